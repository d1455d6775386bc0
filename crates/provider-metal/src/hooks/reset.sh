# Takes the node out of its cluster and the cluster off the host.
if command -v kubeadm >/dev/null; then
    kubeadm reset --force || exit 1
elif command -v systemctl >/dev/null; then
    systemctl disable --now kubelet 2>/dev/null
fi
rm -rf /etc/cni/net.d /etc/kubernetes/kubelet.conf /etc/kubernetes/bootstrap-kubelet.conf \
    /etc/kubernetes/pki /etc/kubernetes/manifests /var/lib/kubelet/pki
