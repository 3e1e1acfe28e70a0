# Prints, in one round trip, the state of a host for "cluster status": lines of fields separated
# by tabs. The caller sets CONTROL_PLANE (0 or 1), SELF (address), PORT, VIP (address or ""), and BRIEF: with 1 it leaves out certificates,
# components and other parts that only "cluster status" shows, since each program that it starts takes a tenth of a second.

s_program() {
	v=
	if [ "$BRIEF" = 0 ]; then
		v=$("$2" --version 2>/dev/null | sed -n '1s/.*\(v[0-9][^ ]*\).*/\1/p') || v=
	elif command -v "$2" >/dev/null 2>&1; then
		v=- # the API knows it
	fi
	a=$(systemctl is-active "$1.service" 2>/dev/null) || a=${a:-absent}
	printf '%s\t%s\t%s\n' "$1" "$v" "$a"
}

# s_certs: prints the first certificate of each file, "cert NAME BASE64". Kubeconfigs have theirs encoded as a whole, without its key. Keys never leave the
# machine. One program reads all files, since starting a program for each takes longer than all else.
s_certs() {
	set --
	k=$R/var/lib/kubelet/pki/kubelet-client-current.pem
	[ ! -f "$k" ] || set -- "$@" n=kubelet "$k"
	# A kubelet signs its own certificate before it requests one from the cluster.
	for k in kubelet-server-current.pem kubelet.crt; do
		[ -f "$R/var/lib/kubelet/pki/$k" ] || continue
		set -- "$@" n=kubelet-server "$R/var/lib/kubelet/pki/$k"
		break
	done
	for f in "$R"/etc/kubernetes/pki/*.crt "$R"/etc/kubernetes/pki/etcd/*.crt; do
		[ -f "$f" ] || continue
		n=${f#"$R/etc/kubernetes/pki/"}
		# Workers hold a copy of the authority; it is listed with the control plane.
		[ "$CONTROL_PLANE" = 1 ] || [ "$n" != ca.crt ] || continue
		set -- "$@" "n=${n%.crt}" "$f"
	done
	for n in admin super-admin controller-manager scheduler; do
		f=$R/etc/kubernetes/$n.conf
		[ ! -f "$f" ] || set -- "$@" "n=$n.conf" "$f"
	done
	[ $# -gt 0 ] || return 0
	# awk stops at a file that it can't open, such as one on a bad disk.
	rows=$(s_cert "$@" 2>/dev/null) || rows=$(while [ $# -gt 0 ]; do s_cert "$1" "$2" 2>/dev/null || :; shift 2; done)
	[ -z "$rows" ] || printf '%s\n' "$rows"
}

# s_cert n=NAME FILE...: prints the rows of files.
s_cert() {
	awk '
		function row(data) { if (data != "" && !printed[n]++) printf "cert\t%s\t%s\n", n, data }
		FNR == 1 { on = 0 }
		/^-----BEGIN CERTIFICATE-----/ { on = 1; body = ""; next }
		/^-----END CERTIFICATE-----/ { if (on) row(body); on = 0 }
		on { sub(/[ \t\r]+$/, ""); body = body $0 }
		$1 == "client-certificate-data:" { row($2) }' "$@"
}

# s_renewal: the kubelet rotates its certificate; a timer renews those of the control plane.
s_renewal() {
	if grep -qs '^rotateCertificates: true' "$R"/var/lib/kubelet/config.yaml "$R"/etc/paictl/kubelet.conf.d/*; then
		printf 'renewal\tkubelet\ton\n'
	else
		printf 'renewal\tkubelet\toff\n'
	fi
	[ "$CONTROL_PLANE" = 1 ] || return 0
	t=off
	if systemctl is-enabled --quiet paictl-certificates.timer 2>/dev/null && systemctl is-active --quiet paictl-certificates.timer 2>/dev/null; then t=on; fi
	printf 'renewal\tcontrol-plane\t%s\n' "$t"
}

s_lock() {
	f=$R/run/paictl.lock
	[ -f "$f" ] || return 0
	exec 8<"$f"
	if ! flock -n -s 8; then printf 'lock\t%s\n' "$(head -n 1 "$f")"; fi
	exec 8<&-
}

s_kubectl() { timeout 20 kubectl --server="https://$SELF:$PORT" --request-timeout=10s "$@"; }

# s_down WHY: prints that the API doesn't answer.
s_down() { printf 'api\tdown\t%s\n' "$(printf %s "$1" | tr '\t\n' '  ' | cut -c1-300)"; }

# s_api: prints the state of the whole cluster from this machine's API server. kubectl spends most of its time starting, so the
# queries run in parallel, and are as few as possible. Each pipe keeps their answers apart.
s_api() {
	[ -f "$KUBECONFIG" ] && command -v kubectl >/dev/null 2>&1 || return 0
	if [ "$BRIEF" = 1 ]; then
		if nodes=$(s_nodes 2>/dev/null); then
			printf 'api\tup\t\n%s\n' "$nodes"
		else
			s_down "$(s_kubectl get --raw /readyz 2>&1 || true)"
		fi
		return 0
	fi
	s_cluster | {
		s_pods | {
			if why=$(s_kubectl get --raw /readyz 2>&1); then
				printf 'api\tup\t\n'
				printf 'server\t%s\n' "$(sed -n 's/^ *server: *//p' "$KUBECONFIG" | head -n 1)"
			else
				s_down "$why"
			fi
			cat
		}
		cat
	}
}

# s_node and s_workload are the templates of rows.
s_node='node{{"\t"}}{{.metadata.name}}{{"\t"}}{{if .spec.unschedulable}}cordoned{{end}}{{"\t"}}{{with .status.nodeInfo}}{{with .kubeletVersion}}{{printf "%q" .}}{{end}}{{end}}{{"\t"}}{{range .status.conditions}}{{printf "%q" .type}}={{printf "%q" .status}};{{end}}{{"\t"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{if ne .status "True"}}{{printf "%q" (printf "%s: %s" .reason .message)}}{{end}}{{end}}{{end}}{{"\t"}}{{.spec.podCIDR}}{{"\t"}}{{range .status.addresses}}{{if eq .type "InternalIP"}}{{printf "%q" .address}};{{end}}{{end}}{{"\t"}}{{range $k, $v := .metadata.labels}}{{if eq $k "node-role.kubernetes.io/control-plane"}}control-plane{{end}}{{end}}{{"\t"}}{{range .status.conditions}}{{if or (eq .type "GPUsUnhealthy") (eq .type "GPUDriverMissingAtNextBoot")}}{{if eq .status "True"}}{{with .message}}{{printf "%q" .}};{{end}}{{end}}{{end}}{{end}}{{"\t"}}{{with .status.nodeInfo}}{{with .containerRuntimeVersion}}{{printf "%q" .}}{{end}}{{end}}{{"\t"}}{{if .spec.unschedulable}}{{range $k, $v := .metadata.annotations}}{{if eq $k "paictl.openpai.org/cordoned-by"}}{{printf "%q" $v}}{{end}}{{end}}{{end}}{{"\n"}}'
s_workload='{{if or (eq .metadata.namespace "kube-system") (eq .metadata.namespace "kube-flannel")}}workload{{"\t"}}{{.metadata.name}}{{"\t"}}{{if eq .kind "Deployment"}}{{or .status.readyReplicas 0}}{{"\t"}}{{or .spec.replicas 0}}{{else}}{{or .status.numberReady 0}}{{"\t"}}{{or .status.desiredNumberScheduled 0}}{{end}}{{"\n"}}{{end}}'

s_nodes() { s_kubectl get nodes -o "go-template={{range .items}}$s_node{{end}}"; }

s_cluster() {
	s_kubectl get nodes,deployments,daemonsets -A -o "go-template={{range .items}}{{if eq .kind \"Node\"}}$s_node{{else}}$s_workload{{end}}{{end}}" || return 1
	[ -z "$VIP" ] || s_kubectl get lease pai-api-vip -n kube-system --ignore-not-found -o go-template='{{with .spec}}{{with .holderIdentity}}vip-holder{{"\t"}}{{printf "%q" .}}{{"\n"}}{{end}}{{end}}'
}

s_pods() {
	s_kubectl get pods -n kube-system -l tier=control-plane -o go-template='{{range .items}}pod{{"\t"}}{{index .metadata.labels "component"}}{{"\t"}}{{.spec.nodeName}}{{"\t"}}{{range .status.containerStatuses}}{{if .ready}}ready{{else}}{{range $k, $v := .state}}{{$k}} {{with $v.reason}}{{.}}{{end}}{{end}}{{end}}{{"\t"}}{{.restartCount}}{{end}}{{"\n"}}{{end}}'
}

# s_vip: prints whether the API answers at its virtual address.
s_vip() {
	[ -n "$VIP" ] && [ -f "$KUBECONFIG" ] || return 0
	if kubectl --server="https://$VIP:$PORT" get --raw /readyz --request-timeout=5s >/dev/null 2>&1; then printf 'vip-answers\tyes\n'; else printf 'vip-answers\tno\n'; fi
}

# s_knocks: prints the machines that were removed while they were off and try to be nodes again, with the time of the last try, from the audit log.
s_knocks() {
	log=$R/var/log/kubernetes/audit.log
	[ -f "$log" ] || return 0
	grep -F 'paictl-removed-machines' "$log" | grep -F '"username":"system:node:' | tail -n 500 |
		sed -n 's/.*"username":"system:node:\([^"]*\)".*"stageTimestamp":"\([^".]*\)[^"]*".*/\1 \2/p' |
		awk '{ at[$1] = $2 } END { for (n in at) printf "knock\t%s\t%sZ\n", n, at[n] }'
}

s_control_plane() {
	s_api 2>/dev/null || true
	[ "$BRIEF" = 0 ] || return 0
	s_vip
	s_knocks 2>/dev/null || true
}

s_machine() {
	s_program kubelet kubelet
	s_program containerd containerd
	printf 'kernel\t%s\n' "$(uname -r)"
	if [ -f "$R/etc/kubernetes/kubelet.conf" ]; then printf 'member\tyes\n'; fi
	pod_network
	[ "$BRIEF" = 0 ] || return 0
	s_certs
	s_renewal
	s_lock
}

status() {
	if [ "$CONTROL_PLANE" = 1 ]; then
		# The machine is checked while the API answers.
		s_control_plane | { s_machine; cat; }
	else
		s_machine
	fi
}
