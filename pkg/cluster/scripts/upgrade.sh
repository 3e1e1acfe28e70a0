# The queries of "cluster upgrade" to the API. The caller defines self, and sets NODE for one node.

# g_busy: prints "task node namespace framework" for each task that hasn't ended, only those on NODE if it is set, and "all yes" at the end. Only
# the controller creates pods in the namespace of jobs.
g_busy() {
	tasks=$(self -n pai-jobs get pods -l FC_FRAMEWORK_NAME --request-timeout=60s \
		--field-selector="status.phase!=Succeeded,status.phase!=Failed${NODE:+,spec.nodeName=$NODE}" \
		-o 'go-template={{range .items}}{{with .spec.nodeName}}task{{"\t"}}{{.}}{{else}}task{{"\t"}}-{{end}}{{"\t"}}{{.metadata.namespace}}{{"\t"}}{{index .metadata.labels "FC_FRAMEWORK_NAME"}}{{"\n"}}{{end}}') || exit 1
	printf '%s\nall\tyes\n' "$tasks"
}

# g_removed RELEASE: prints "removed group version resource" for each API that a client has used since the start of the API server, and that the
# release, such as 1.37, no longer has.
g_removed() {
	metrics=$(self get --raw /metrics --request-timeout=60s) || exit 1
	printf '%s\n' "$metrics" | awk -v want="$1" '
		# value NAME: returns the value of a label. Only the API server writes this text.
		function value(name, s) {
			if (!match($0, "[{,]" name "=\"[^\"]*\"")) return ""
			s = substr($0, RSTART + 1, RLENGTH - 1)
			return substr(s, length(name) + 3, length(s) - length(name) - 3)
		}
		function number(v, a) { split(v, a, "."); return a[1] * 1000 + a[2] }
		/^apiserver_requested_deprecated_apis\{/ && $NF > 0 {
			r = value("removed_release")
			if (r != "" && number(r) <= number(want)) printf "removed\t%s\t%s\t%s\n", value("group"), value("version"), value("resource")
		}' | sort -u
}

# g_stop: stops the jobs that have tasks on NODE.
g_stop() {
	busy=$(g_busy) || exit 1
	printf '%s\n' "$busy" | awk -F '\t' '$1 == "task" && $4 != "" { print $3 "\t" $4 }' | sort -u | while IFS=$TAB read -r ns name; do
		if out=$(self -n "$ns" patch frameworks.frameworkcontroller.microsoft.com "$name" --type merge -p '{"spec":{"executionType":"Stop"}}' 2>&1); then
			printf 'stopped\t%s\t%s\n' "$ns" "$name"
			continue
		fi
		case $out in
		*NotFound*) ;;
		*)
			printf '%s\n' "$out" >&2
			exit 1
			;;
		esac
	done
}
