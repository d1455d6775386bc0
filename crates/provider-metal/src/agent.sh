# What the provider runs on a host, by SSH, with the host as its only memory. POSIX sh, coreutils and util-linux.
# No single quotes in here: it travels as one quoted argument through whatever login shell there is.
#
#   probe FOLDER                          who and what the host is, and the job it last had
#   record FOLDER                         the same, with the copy of our record that is kept there
#   wait  FOLDER OPERATION SECS           what became of a job, waiting for its end at most so long
#   job   FOLDER OPERATION SECS MODE LIMIT SIZE*5 OTHER   begins a job once, then as wait; standard input holds the pieces.
#                                         The job OTHER is refused from then on
#   refuse FOLDER OPERATION               refuses a job from now on, unless it was begun
#
# A job is a folder FOLDER/job, put there whole by one rename. It runs detached, so a lost connection or a lost
# provider does not touch it, and not longer than LIMIT. Beginning it twice is beginning it once.
umask 077
export LC_ALL=C
verb=$1 folder=$2 operation=$3 secs=$4 mode=$5 limit=$6
job=$folder/job
new=$folder/job.new.$$
die() { echo "bigfleet-error $*"; exit 3; }

# The folder must be ours alone: otherwise another user of the host could swap files under us.
own_folder() {
    if [ -L "$folder" ]; then die "work folder $folder is a symbolic link"; fi
    if [ ! -e "$folder" ]; then mkdir -p "$folder" || die "work folder $folder cannot be made"; fi
    if [ ! -d "$folder" ]; then die "work folder $folder is no folder"; fi
    owner=$(stat -c %u "$folder")
    if [ "$owner" != "$(id -u)" ]; then die "work folder $folder belongs to user $owner"; fi
    chmod 700 "$folder" || die "work folder $folder is open to others"
    for part in job lock refused; do
        if [ -L "$folder/$part" ]; then die "$folder/$part is a symbolic link"; fi
    done
}

# The first line of a file into the variable line, empty if there is none. A builtin: where no process can be started any
# more, what stands in the file must not turn into something else.
first_line() { line=; { read -r line <"$1"; } 2>/dev/null || :; }

boot_id() { first_line /proc/sys/kernel/random/boot_id; echo "${line:-unknown}"; }

# Whether the job was begun before the host last started. What cannot be read is no evidence.
is_of_another_boot() {
    first_line "$job/boot"
    began=$line
    first_line /proc/sys/kernel/random/boot_id
    [ -n "$began" ] && [ -n "$line" ] && [ "$began" != "$line" ]
}

# Whether the runner is gone. It is not before it has said its number whole: a file is empty between being made and being
# written, and a job that has just begun is no lost one.
is_gone() {
    first_line "$job/pid"
    case $line in "" | *[!0-9]*) return 1 ;; esac
    ! kill -0 "$line" 2>/dev/null
}

# Prints the end of a file of the job, with its size first. A link is not followed.
show() {
    if [ -L "$job/$1" ] || [ ! -f "$job/$1" ]; then return; fi
    size=$(($(wc -c <"$job/$1")))
    if [ "$size" -gt "$2" ]; then size=$2; fi
    echo "$1 $size"
    tail -c "$size" "$job/$1"
    echo
}

has_ended() { [ -f "$job/exit" ] && [ ! -L "$job/exit" ]; }

# One line about the job there is: none, ended CODE, lost, or running.
status() {
    if [ ! -f "$job/operation" ]; then echo "job none"
    elif has_ended; then echo "job ended $(head -c 8 "$job/exit")"
    elif is_of_another_boot; then echo "job lost"
    elif is_gone && ! has_ended; then echo "job lost"
    else echo "job running"; fi
}

report() {
    echo "bigfleet-agent 1"
    status
    if [ -f "$job/operation" ]; then echo "operation $(head -c 200 "$job/operation")"; fi
    echo "boot $(boot_id)"
    show output 65536
}

# Ends the job that is there, with everything it started.
stop_job() {
    [ -f "$job/group" ] && ! has_ended && ! is_of_another_boot || return 0
    group=$(head -c 16 "$job/group")
    case $group in "" | *[!0-9]*) return 0 ;; esac
    kill -TERM "-$group" 2>/dev/null || return 0
    for pause in 1 2 3 4 5 6 7 8 9 10; do
        kill -0 "-$group" 2>/dev/null || return 0
        sleep 0.5
    done
    kill -KILL "-$group" 2>/dev/null
}

# Reads the pieces of a job into a folder beside it.
receive() {
    rm -rf "$new" && mkdir "$new" || die "$new cannot be made"
    for piece in facts first second blob record; do
        head -c "$1" >"$new/$piece" || die "$new/$piece cannot be written: is the disk full?"
        if [ "$(wc -c <"$new/$piece")" -ne "$1" ]; then
            rm -rf "$new"
            die "the connection broke, or the disk is full, before all of the job was there"
        fi
        shift
    done
    boot_id >"$new/boot"
    echo "$operation" >"$new/operation"
    cat >"$new/steps" <<"STEPS"
. "$1/facts"
export BIGFLEET_BOOTSTRAP="$1/blob"
hook() { case $(head -c 2 "$1") in "#!") chmod 700 "$1" && "$1" ;; *) sh "$1" ;; esac; }
case $2 in
join) hook "$1/first" || exit $?
      until hook "$1/second"; do sleep 1; done ;;
reset) hook "$1/first" && hook "$1/second" ;;
ensure) hook "$1/second" || { hook "$1/first" && hook "$1/second"; } ;;
esac
STEPS
    # The exit code is written when the steps end, whoever still holds their output.
    cat >"$new/runner" <<"RUNNER"
job=$1 mode=$2 limit=$3
echo $$ >"$job/pid.new" && mv "$job/pid.new" "$job/pid"
cd /
(
    timeout -k 10 "$limit" sh "$job/steps" "$job" "$mode" &
    echo $! >"$job/group"
    wait $!
    code=$?
    if [ "$code" = 124 ]; then echo "stopped after $limit s"; fi
    rm -f "$job/blob"
    echo "$code" >"$job/exit.new"
    sync "$job/exit.new" 2>/dev/null
    mv "$job/exit.new" "$job/exit"
) </dev/null 2>&1 | { head -c 1048576 >"$job/output"; cat >/dev/null; }
RUNNER
    sync "$new/record" "$new/operation" 2>/dev/null
}

lock() {
    exec 9>"$folder/lock"
    flock -w 30 9 || die "another connection holds the lock of $folder"
}

# A connection that was given up may still be on its way here. What it brings must not begin any more.
refuse() {
    { tail -n 49 "$folder/refused" 2>/dev/null; echo "$1"; } >"$folder/refused.new"
    mv "$folder/refused.new" "$folder/refused" || die "$folder/refused cannot be written"
}

# Puts the job in place and starts it. Under a lock: several connections may bring the same job.
begin() {
    lock
    if [ -n "$other" ]; then refuse "$other"; fi
    if [ "$(cat "$job/operation" 2>/dev/null)" = "$operation" ]; then
        rm -rf "$new"
        exec 9>&-
        return
    fi
    if grep -qxF "$operation" "$folder/refused" 2>/dev/null; then
        rm -rf "$new"
        die "the job $operation was given up before it came"
    fi
    stop_job
    rm -rf "$job"
    mv "$new" "$job" || die "$job cannot be put in place"
    rm -rf "$folder"/job.new.*
    setsid sh "$job/runner" "$job" "$mode" "$limit" </dev/null >/dev/null 2>&1 9>&- &
    exec 9>&-
}

await() {
    until=$(($(date +%s) + secs))
    while first_line "$job/operation" && [ "$line" = "$operation" ] && [ "$(status)" = "job running" ] &&
        [ "$(date +%s)" -lt "$until" ]; do
        sleep 0.2
    done
    report
    echo end
}

own_folder
case $verb in
probe | record)
    report
    if [ "$verb" = record ]; then show record 7000000; fi
    echo "machine $(head -c 64 /etc/machine-id 2>/dev/null)"
    echo "cpus $(getconf _NPROCESSORS_ONLN)"
    echo "memory_kib $(awk "/^MemTotal:/ { print \$2 }" /proc/meminfo)"
    echo end
    ;;
wait) await ;;
refuse)
    lock
    refuse "$operation"
    report
    echo end
    ;;
job)
    shift 6
    other=$6
    receive "$@"
    begin
    await
    ;;
*) die "unknown verb" ;;
esac
