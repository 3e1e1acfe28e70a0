// Package job is the commands "paictl job ...": what researchers do all day.
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
		Long: `A job is a file in OpenPAI's job protocol: roles of tasks, each with an image, commands and the machines'
resources that it needs. Its name is unique among your jobs.

NAME is a job of yours; USER/NAME or USER~NAME one of somebody else. Who you are is --user, the setting
"user", or the name of your account on this machine.`,
		Example: `  paictl job init -o hello.yaml
  paictl job submit hello.yaml --watch
  paictl job list
  paictl job why hello
  paictl job logs hello -f`,
	}
	cmd.AddCommand(NewCmdInit(f, nil), NewCmdValidate(f, nil), NewCmdRender(f, nil), NewCmdSchema(f, nil))
	cmd.AddCommand(NewCmdSubmit(f, nil), NewCmdList(f, nil), NewCmdGet(f, nil), NewCmdWhy(f, nil), NewCmdQueue(f, nil), NewCmdWait(f, nil))
	cmd.AddCommand(NewCmdStop(f, nil), NewCmdDelete(f, nil), NewCmdRetry(f, nil), NewCmdScale(f, nil), NewCmdClone(f, nil))
	cmd.AddCommand(NewCmdLogs(f, nil), NewCmdEvents(f, nil), NewCmdExec(f, nil), NewCmdShell(f, nil), NewCmdPortForward(f, nil), NewCmdCopy(f, nil), NewCmdTop(f, nil))
	return cmd
}
