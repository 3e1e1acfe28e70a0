# The certificate of the kubelet's own server. The caller sets node.

# d_serving: prints whether the kubelet has a certificate that the cluster has signed.
d_serving() {
	if [ -s "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ]; then printf 'serving\tyes\n'; else printf 'serving\tno\n'; fi
}

# v_serving ADDRESS PORT: waits until the kubelet serves a certificate that the cluster has signed at this address, since kubectl logs needs it. A
# kubelet that requires a login (an invalid token keeps kubectl from prompting for one) has already presented a valid certificate.
v_serving() {
	at=$1:$2
	i=0
	while :; do
		if [ -s "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ]; then
			said=$(kubectl --kubeconfig=/dev/null --server="https://$at" --certificate-authority="$R/etc/kubernetes/pki/ca.crt" --token=none --request-timeout=10s get --raw /healthz 2>&1 </dev/null) && return 0
			case $said in *"must be logged in"*) return 0 ;; esac
		else
			said='it has none yet'
		fi
		i=$((i + 1))
		[ "$i" -lt 360 ] || break
		sleep 0.5
	done
	# Its last request has the reason.
	last=$(kubectl --kubeconfig "$R/etc/kubernetes/kubelet.conf" get certificatesigningrequests --request-timeout=30s --field-selector spec.signerName=kubernetes.io/kubelet-serving \
		-o 'go-template={{range .items}}{{if eq .spec.username "system:node:'"$node"'"}}{{.metadata.creationTimestamp}}{{"\t"}}{{.metadata.name}}{{"\t"}}{{range .status.conditions}}{{.type}}{{"\t"}}{{with .message}}{{printf "%q" .}}{{end}}{{end}}{{"\n"}}{{end}}{{end}}' 2>/dev/null |
		sort | tail -n 1) || last=
	name=$(printf %s "$last" | cut -f 2)
	case $last in
	'') why="the kubelet has made no request" remedy="see journalctl -u kubelet on the host" ;;
	*Denied*) why="the cluster has denied its request $name: $(printf %s "$last" | cut -f 4)" remedy="correct what it names, then: systemctl restart kubelet on the host, and the same command again" ;;
	*Approved*) why="its request $name is approved; the kubelet says: $(printf %s "$said" | tail -n 1)" remedy="see kubectl -n kube-system logs -l component=kube-controller-manager, which signs it, and journalctl -u kubelet on the host" ;;
	*) why="its request $name is not approved" remedy="see kubectl -n kube-system logs deployment/pai-csr-approver" ;;
	esac
	echo "the kubelet has no certificate of the cluster's authority for $at after three minutes: $why -> $remedy" >&2
	exit 1
}
