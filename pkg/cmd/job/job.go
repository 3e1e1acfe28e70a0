// Package job contains the commands "paictl job ...", which researchers use for their daily work.
// In: job files, names of jobs, a kubeconfig. Out: jobs in the cluster; tables, pages, sentences and JSON on stdout; progress on stderr.
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
		{"run", "Run jobs:", []*cobra.Command{NewCmdSubmit(f), NewCmdRun(f), NewCmdWait(f), NewCmdStop(f), NewCmdRetry(f), NewCmdScale(f), NewCmdDelete(f)}},
		{"look", "Look at them:", []*cobra.Command{NewCmdList(f), NewCmdGet(f), NewCmdWhy(f), NewCmdLogs(f), NewCmdDiff(f), NewCmdEvents(f), NewCmdQueue(f), NewCmdTop(f), NewCmdMetrics(f), NewCmdUsage(f)}},
		{"inside", "Go into a task:", []*cobra.Command{NewCmdShell(f), NewCmdExec(f), NewCmdCopy(f), NewCmdPortForward(f)}},
		{"file", "Write job files:", []*cobra.Command{NewCmdInit(f), NewCmdValidate(f), NewCmdRender(f), NewCmdClone(f), NewCmdTemplate(f), NewCmdSchema(f)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, verb := range g.verbs {
			verb.GroupID = g.id
			cmd.AddCommand(verb)
		}
	}
	return cmd
}
