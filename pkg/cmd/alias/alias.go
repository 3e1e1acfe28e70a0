// Package alias translates the command lines of the original paictl.
// In: the arguments as the user typed them. Out: the arguments in the current spelling, and a line that shows the new command line. If there is
// no corresponding command, only the line.
package alias

import (
	"fmt"
	"slices"
	"strings"
)

// rule maps one command of the original paictl to a current command. It accepts the spellings of OpenPAI 0.6 to 1.8.
type rule struct {
	old []string
	now []string // nil: there is no new command
	// flags maps flags of the old command to the current flags. Other flags stay unchanged.
	flags map[string]string
	// dropped are flags of the old command that have no effect now. Each had a value.
	dropped []string
	// values maps a flag with a certain value in the old command, such as "-m service", to the current words.
	values map[string]string
	// lists are current flags whose values were separate words in the old command, such as "-n a b".
	lists []string
	// say replaces the default note if now is nil.
	say string
}

func rules() []rule {
	onCluster := map[string]string{"-c": "--kubeconfig"}
	nodes := map[string]string{"--node-list": "-l"}
	generate := map[string]string{"--input": "-i", "--output": "-o", "--force": "-f"}
	services := map[string]string{"-c": "--kubeconfig", "-k": "-x", "--skip-service-list": "-x", "--service-list": "-n", "--service-name": "-n"}
	several := []string{"-n", "-x"}
	folder := []string{"-p", "--config-path"} // the cluster's copy is used
	return []rule{
		{old: words("cluster k8s-bootup"), now: words("cluster up")},
		{old: words("cluster k8s-clean"), now: words("cluster down"), flags: map[string]string{"-f": "--purge-data", "--force": "--purge-data"}},
		{old: words("cluster generate-configuration"), now: words("config generate"), flags: generate},
		{old: words("cluster k8s-set-env"), now: words("cluster kubeconfig")},
		{old: words("cluster install-kubectl"), now: words("cluster kubeconfig")},
		{old: words("machine add"), now: words("node add"), flags: nodes},
		{old: words("machine remove"), say: `"node remove HOST... -p DIR" takes names instead of a file`},
		{old: words("machine etcd-fix"), say: `"cluster up --limit HOST" repairs a node of the control plane`},
		{old: words("check"), now: words("cluster preflight")},
		{old: words("config get"), now: words("config pull"), flags: onCluster},
		{old: words("config update"), now: words("config push"), flags: onCluster},
		{old: words("service start"), now: words("service start"), flags: services, lists: several},
		{old: words("service stop"), now: words("service stop"), flags: services, lists: several, dropped: folder},
		{old: words("service delete"), now: words("service delete"), flags: services, lists: several, dropped: folder},
		{old: words("service refresh"), now: words("service start"), flags: services, lists: several},
		{old: words("config get-id"), now: words("config get-id"), flags: onCluster},
		{old: words("config pull"), now: words("config pull"), flags: onCluster},
		// A push now needs a message. The modes of the original command aren't used as messages.
		{old: words("config push"), now: words("config push"), flags: onCluster, values: map[string]string{
			"-m all": "", "-m service": "--only layout.yaml,services-configuration.yaml"}},
		{old: words("config external-config-update"), say: `"config push --from git::URL//path?ref=BRANCH" takes the files from a repository`},
		{old: words("layout"), say: `"config generate --from-kubeconfig FILE -o DIR" writes the layout of an existing cluster`},
		{old: words("image build"), now: words("image build"), dropped: words("-p --config-path")},
		{old: words("utility ssh"), say: `"sandbox ssh NAME" opens a shell on a sandbox host; for your own machines use ssh itself`},
		{old: words("utility sftp-copy"), say: "use scp or rsync"},
	}
}

// Rewrite translates args to the current spelling. It returns a note about the changes for the user, or "" if it changed nothing. If it returns
// a note and nil args, there is no current command.
func Rewrite(args []string) (rewritten []string, note string) {
	// These flags have the same meaning for every command. -p/--config-path is unchanged.
	everywhere := map[string]string{"--kube-config-path": "--kubeconfig"}
	i := firstWord(args)
	for _, r := range rules() {
		if !slices.Equal(args[i:min(i+len(r.old), len(args))], r.old) {
			continue
		}
		old := strings.Join(r.old, " ")
		if r.now == nil {
			return nil, fmt.Sprintf("paictl: %q no longer exists: %s", old, r.say)
		}
		rest, dropped := dropFlags(args[i+len(r.old):], r.dropped)
		rest, replaced := replaceValues(rest, r.values)
		rest, renamed := renameFlags(rest, r.flags)
		rest, more := renameFlags(rest, everywhere)
		rest, joined := joinLists(rest, r.lists)
		if old == strings.Join(r.now, " ") {
			return slices.Concat(args[:i], r.now, rest), joinNotes(slices.Concat(dropped, replaced, renamed, more, joined))
		}
		return slices.Concat(args[:i], r.now, rest), fmt.Sprintf("paictl: %q is now %q", old, strings.Join(r.now, " "))
	}
	if rest, renamed := renameFlags(args, everywhere); len(renamed) > 0 {
		return rest, joinNotes(renamed)
	}
	return args, ""
}

// joinNotes combines notes about flags into one note for the user. It returns "" if there are no notes.
func joinNotes(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return "paictl: " + strings.Join(notes, ", ")
}

// joinLists replaces "-n a b" with "-n a,b" for the given flags. It also returns notes about the replaced flags.
func joinLists(args, lists []string) (rest, notes []string) {
	for i := 0; i < len(args); i++ {
		rest = append(rest, args[i])
		if !slices.Contains(lists, args[i]) {
			continue
		}
		var values []string
		for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			values = append(values, args[i])
		}
		if len(values) > 0 {
			rest = append(rest, strings.Join(values, ","))
		}
		if len(values) > 1 {
			flag := rest[len(rest)-2]
			notes = append(notes, fmt.Sprintf("%q is now %q", flag+" "+strings.Join(values, " "), flag+" "+strings.Join(values, ",")))
		}
	}
	return rest, notes
}

// firstWord returns the index of the first argument that isn't a flag. It skips the value of --log-file, the only flag before the command whose
// value is a separate word.
func firstWord(args []string) int {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--log-file":
			i++
		case args[i] == "--" || !strings.HasPrefix(args[i], "-"):
			return i
		}
	}
	return len(args)
}

// renameFlags renames flags, also in the form --flag=value, up to a "--". It returns notes about the renamed flags, and doesn't change args.
func renameFlags(args []string, names map[string]string) (renamed, notes []string) {
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		flag, value, hasValue := strings.Cut(a, "=")
		now, ok := names[flag]
		if !ok {
			continue
		}
		out[i] = now
		if hasValue {
			out[i] += "=" + value
		}
		notes = append(notes, fmt.Sprintf("%q is now %q", flag, now))
	}
	return out, notes
}

// dropFlags removes flags with their values, up to a "--". It returns notes about the removed flags.
func dropFlags(args, flags []string) (rest, notes []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(rest, args[i:]...), notes
		}
		flag, _, hasValue := strings.Cut(args[i], "=")
		if !slices.Contains(flags, flag) {
			rest = append(rest, args[i])
			continue
		}
		notes = append(notes, fmt.Sprintf("%q no longer has an effect here", flag))
		if !hasValue {
			i++ // its value
		}
	}
	return rest, notes
}

// replaceValues replaces flags that have certain values, up to a "--". It returns notes about the replaced flags.
func replaceValues(args []string, values map[string]string) (rest, notes []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(rest, args[i:]...), notes
		}
		if i+1 < len(args) {
			old := args[i] + " " + args[i+1]
			if now, ok := values[old]; ok {
				rest = append(rest, words(now)...)
				i++
				if now == "" {
					now = "the default"
				}
				notes = append(notes, fmt.Sprintf("%q is now %q", old, now))
				continue
			}
		}
		rest = append(rest, args[i])
	}
	return rest, notes
}

func words(s string) []string { return strings.Fields(s) }
