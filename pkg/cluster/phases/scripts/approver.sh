# The approver of the kubelets' certificates, as this machine's own API server sees it. The caller defines self.

# d_approver prints "verifies yes" if the API server of this machine verifies kubelets.
d_approver() {
	if grep -qs -e '--kubelet-certificate-authority=' "$R/etc/kubernetes/manifests/kube-apiserver.yaml"; then printf 'verifies\tyes\n'; fi
}

# a_machines: applies the list of the cluster's machines, a ConfigMap on standard input (base64). The server applies it, since the record of a
# client-side apply has no room for thousands of machines.
a_machines() {
	base64 -d | self apply --server-side --force-conflicts --field-manager=paictl -f - >&2
	note change "configmap paictl-machines"
}

# a_approver: applies the manifest on standard input (base64).
a_approver() {
	base64 -d | self apply -f - >&2
	note change "pai-csr-approver"
}

# a_works: waits until an approver runs with the current manifest.
a_works() {
	i=0
	while :; do
		s=$(self get deployment -n kube-system pai-csr-approver --request-timeout=10s \
			-o 'go-template={{if eq .metadata.generation .status.observedGeneration}}{{with .status.updatedReplicas}}{{.}}{{else}}0{{end}} {{with .status.availableReplicas}}{{.}}{{else}}0{{end}}{{end}}' 2>/dev/null) || s=
		case $s in '' | 0\ * | *\ 0) ;; *) return 0 ;; esac
		i=$((i + 1))
		[ "$i" -lt 240 ] || break
		sleep 0.5
	done
	why=$(self get pods -n kube-system -l app.kubernetes.io/name=pai-csr-approver --request-timeout=10s \
		-o 'go-template={{range .items}}{{range .status.conditions}}{{if eq .status "False"}}{{with .message}}{{.}} {{end}}{{end}}{{end}}{{range .status.containerStatuses}}{{range $k, $v := .state}}{{with $v.message}}{{.}} {{end}}{{end}}{{end}}{{end}}' 2>/dev/null |
		tr '\t\n' '  ' | cut -c1-300) || why=
	echo "pai-csr-approver, which approves kubelets' certificates, does not run after two minutes: ${why:-it has no pods} -> kubectl -n kube-system describe deployment pai-csr-approver, and its pods' logs" >&2
	exit 1
}
