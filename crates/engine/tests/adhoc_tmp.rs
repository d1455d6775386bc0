//! x
use bigfleet_engine::{Fleet, Options};
use bigfleet_model::machine::*; use bigfleet_model::need::*; use bigfleet_model::profile::*; use bigfleet_model::penalty::*; use bigfleet_model::requirement::*; use bigfleet_model::resource::*; use bigfleet_model::label::*;
fn m(id:&str, c:&str)->Machine{ let mut m=Machine::new(id,MachineState::Configured); m.host=Some(HostRef::default()); m.cluster=c.into(); m.resources=ResourceVec::parse([("cpu","8")]).unwrap(); m.labels=Labels::new([("host",id)]).unwrap(); m}
fn n(c:&str, req:Vec<Requirement>)->Need{ Need::of_unit(c, Profile::new(req,vec![],1,PenaltyBucket::ZERO,PenaltyBucket::ZERO).into(), ResourceVec::parse([("cpu","1")]).unwrap())}
#[test] fn classes_u16(){ let mut f=Fleet::default(); for i in 0..66_000{ f.observe(&m(&format!("h{i}"),"shop")).unwrap(); } f.replace("shop", vec![n("shop", vec![Requirement::is_in("host",["h5"])])],1).unwrap(); f.cycle(&Options::default(),1); }
#[test] fn new_class(){ let mut f=Fleet::default(); for i in 0..1000{ f.observe(&m(&format!("h{i}"),&format!("c{}",i/5))).unwrap(); } for i in 0..200 { let c=format!("c{i}"); f.replace(&c, vec![n(&c,vec![]).times(40)],1).unwrap(); }
 println!("{:?}", f.cycle(&Options::default(),1).work);
 let mut x=m("h7","c1"); x.resources=ResourceVec::parse([("cpu","9")]).unwrap(); f.observe(&x).unwrap(); println!("newclass {:?}", f.cycle(&Options::default(),1).work);
 f.replace("c3", vec![n("c3", vec![Requirement::is_in("newkey",["v"])])],1).unwrap(); println!("newkey {:?}", f.cycle(&Options::default(),1).work); 
 println!("quiet {:?}", f.cycle(&Options::default(),1).work); }
