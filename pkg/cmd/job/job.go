// Package job has the commands "paictl job ...", for the daily work of researchers.
// In: job files, names of jobs, a kubeconfig. Out: jobs in the cluster; tables, pages, sentences and
// JSON on stdout; progress on stderr.
package job

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdJob returns "paictl job".
func NewCmdJob(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Submit jobs, look at them, and find out why they wait or failed",
		Long: `A job is a file in OpenPAI's job protocol: task roles, each with an image, commands and the resources
that its tasks need. Its name is unique among your jobs.

NAME is one of your jobs; USER/NAME or USER~NAME is another user's. Your user name is --user, the
setting "user", or the name of your account on this machine.`,
		Example: `  paictl job init -o hello.yaml
  paictl job submit hello.yaml --watch
  paictl job run -it docker.io/openpai/examples-python:3
  paictl job list
  paictl job why hello
  paictl job logs hello -f`,
	}
	for _, g := range []struct {
		id, title string
		verbs     []*cobra.Command
	}{
		{"run", "Run jobs:", []*cobra.Command{NewCmdSubmit(f, nil), NewCmdRun(f, nil), NewCmdWait(f, nil), NewCmdStop(f, nil), NewCmdRetry(f, nil), NewCmdScale(f, nil), NewCmdDelete(f, nil)}},
		{"look", "Look at them:", []*cobra.Command{NewCmdList(f, nil), NewCmdGet(f, nil), NewCmdWhy(f, nil), NewCmdLogs(f, nil), NewCmdDiff(f, nil), NewCmdEvents(f, nil), NewCmdQueue(f, nil), NewCmdTop(f, nil), NewCmdMetrics(f, nil), NewCmdUsage(f, nil)}},
		{"inside", "Go into a task:", []*cobra.Command{NewCmdShell(f, nil), NewCmdExec(f, nil), NewCmdCopy(f, nil), NewCmdPortForward(f, nil)}},
		{"file", "Write job files:", []*cobra.Command{NewCmdInit(f, nil), NewCmdValidate(f, nil), NewCmdRender(f, nil), NewCmdClone(f, nil), NewCmdTemplate(f), NewCmdSchema(f, nil)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
			cmd.AddCommand(verb)
		}
	}
	return cmd
}
