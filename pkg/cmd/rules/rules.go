// Package rules contains the commands "paictl rules ...", which show, check and change the rules that explain failed tasks in the whole cluster.
// In: files of failure rules, a kubeconfig. Out: findings, differences, the rule that matches a failure; a ConfigMap that takes effect at once,
// for running jobs too.
package rules

import (
	"io"
	"os"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// NewCmdRules returns "paictl rules".
func NewCmdRules(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Define what the failures of tasks mean, and which are retried",
		Long: `Failure rules turn the exit of a task (its exit code, the end of its logs, the state of its GPUs) into
a code with a phrase, and say who caused the failure, whether the task is retried, and what to do. A set of
rules is built in; the cluster may have its own instead.

A pushed set takes effect at once, also for running jobs. A set with a mistake is refused.`,
		Example: `  paictl rules show --builtin > rules.yaml
  paictl rules validate rules.yaml
  paictl rules test --rules rules.yaml --exit-code 1 --user-log train.log
  paictl rules push rules.yaml`,
	}
	cmd.AddCommand(NewCmdValidate(f), NewCmdTest(f), NewCmdShow(f), NewCmdDiff(f), NewCmdPush(f))
	return cmd
}

// readFile reads a file of rules, or stdin if the name is "-". It also returns the name of the file that findings contain.
func readFile(in io.Reader, name string) (string, []byte, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(in, rules.MaxBytes+1))
		return "stdin", data, err
	}
	f, err := os.Open(name)
	if err != nil {
		return name, nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return name, nil, hint.Errorf("write the path of a file of rules", "%s is a folder", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, rules.MaxBytes+1))
	return name, data, err
}

// load reads and checks a file of rules. It also returns the text of the file, and the warnings.
func load(in io.Reader, name string) (*rules.Set, []byte, strictyaml.Findings, error) {
	name, data, err := readFile(in, name)
	if err != nil {
		return nil, nil, nil, err
	}
	set, findings := rules.Parse(name, data)
	return set, data, findings, findings.Err()
}

// unified returns the unified diff of two texts, or "" if they are equal.
func unified(from, to string, a, b []byte) string {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // writing to a strings.Builder doesn't fail
		A: difflib.SplitLines(string(a)), B: difflib.SplitLines(string(b)), FromFile: from, ToFile: to, Context: 3,
	})
	if string(a) == string(b) {
		return ""
	}
	return text
}

// completeFile completes the name of one YAML file.
func completeFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
