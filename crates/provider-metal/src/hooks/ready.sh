# Asks the cluster, with the kubelet's own credentials, whether this node is Ready.
conf=/etc/kubernetes/kubelet.conf
[ -s "$conf" ] || exit 1
node=$(hostname | tr "[:upper:]" "[:lower:]")
ready=$(kubectl --kubeconfig "$conf" --request-timeout 10s get node "$node" \
    -o "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}") || exit 1
[ "$ready" = True ]
