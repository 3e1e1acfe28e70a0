# What "cluster upgrade" asks of the API. Given by the caller: self; NODE for one node.

# g_busy: "task node namespace framework task" for each task that runs, or is about to, and "all yes" at the end.
g_busy() {
	self get pods -A -l FC_FRAMEWORK_NAME --request-timeout=60s --field-selector='status.phase!=Succeeded,status.phase!=Failed' \
		-o 'go-template={{range .items}}{{with .spec.nodeName}}{{printf "task\t%s" .}}{{else}}{{"task\t-"}}{{end}}{{"\t"}}{{.metadata.namespace}}{{"\t"}}{{index .metadata.labels "FC_FRAMEWORK_NAME"}}{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}'
	printf 'all\tyes\n'
}

# g_removed RELEASE: "removed group version resource" for each API that somebody has asked for since the API server's start, and that the
# release, such as 1.37, no longer has.
g_removed() {
	self get --raw /metrics --request-timeout=60s | awk -v want="$1" '
		# value NAME: of a label. The text is made by the API server alone.
		function value(name, s) {
			if (!match($0, name "=\"[^\"]*\"")) return ""
			s = substr($0, RSTART, RLENGTH)
			return substr(s, length(name) + 3, length(s) - length(name) - 3)
		}
		function number(v, a) { split(v, a, "."); return a[1] * 1000 + a[2] }
		/^apiserver_requested_deprecated_apis\{/ && $NF > 0 {
			r = value("removed_release")
			if (r != "" && number(r) <= number(want)) printf "removed\t%s\t%s\t%s\n", value("group"), value("version"), value("resource")
		}' | sort -u
}

# g_stop: stops the jobs that have tasks on the node, each by its own state.
g_stop() {
	g_busy | awk -F '\t' -v n="$NODE" '$1 == "task" && $2 == n { print $3 "\t" $4 }' | sort -u | while IFS=$TAB read -r ns name; do
		out=$(self -n "$ns" patch frameworks.frameworkcontroller.microsoft.com "$name" --type merge -p '{"spec":{"executionType":"Stop"}}' 2>&1) ||
			case $out in
			*NotFound*) ;;
			*)
				printf '%s\n' "$out" >&2
				exit 1
				;;
			esac
		printf 'stopped\t%s\t%s\n' "$ns" "$name"
	done
}
