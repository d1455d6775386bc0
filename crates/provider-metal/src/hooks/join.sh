# Runs the bootstrap data: a script by its interpreter if it names one, by sh if not.
case $(head -c 16 "$BIGFLEET_BOOTSTRAP") in
"#cloud-config"*)
    echo "the bootstrap data is cloud-config, not a script; set hooks.join to a script that understands it" >&2
    exit 64
    ;;
"#!"*) chmod 700 "$BIGFLEET_BOOTSTRAP" && exec "$BIGFLEET_BOOTSTRAP" ;;
*) exec sh "$BIGFLEET_BOOTSTRAP" ;;
esac
