# No trace of a cluster is left.
for trace in /etc/kubernetes/kubelet.conf /etc/kubernetes/bootstrap-kubelet.conf /var/lib/kubelet/pki; do
    if [ -e "$trace" ]; then
        echo "$trace is still there" >&2
        exit 1
    fi
done
if command -v pgrep >/dev/null && pgrep -x kubelet >/dev/null; then
    echo "kubelet is still running" >&2
    exit 1
fi
