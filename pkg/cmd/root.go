// Package cmd assembles the command tree of paictl.
// In: a factory. Out: the root command, and Main, which runs it and returns its exit code. Each group of commands has a subfolder, and each
// command a file.
package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/openpai/paictl/pkg/cmd/action"
	"github.com/openpai/paictl/pkg/cmd/alert"
	"github.com/openpai/paictl/pkg/cmd/alias"
	"github.com/openpai/paictl/pkg/cmd/audit"
	"github.com/openpai/paictl/pkg/cmd/bundle"
	"github.com/openpai/paictl/pkg/cmd/cluster"
	"github.com/openpai/paictl/pkg/cmd/config"
	"github.com/openpai/paictl/pkg/cmd/docs"
	"github.com/openpai/paictl/pkg/cmd/doctor"
	"github.com/openpai/paictl/pkg/cmd/group"
	"github.com/openpai/paictl/pkg/cmd/image"
	"github.com/openpai/paictl/pkg/cmd/job"
	"github.com/openpai/paictl/pkg/cmd/login"
	"github.com/openpai/paictl/pkg/cmd/migrate"
	"github.com/openpai/paictl/pkg/cmd/node"
	"github.com/openpai/paictl/pkg/cmd/notify"
	"github.com/openpai/paictl/pkg/cmd/report"
	"github.com/openpai/paictl/pkg/cmd/rules"
	"github.com/openpai/paictl/pkg/cmd/sandbox"
	"github.com/openpai/paictl/pkg/cmd/scheduler"
	"github.com/openpai/paictl/pkg/cmd/service"
	"github.com/openpai/paictl/pkg/cmd/status"
	"github.com/openpai/paictl/pkg/cmd/support"
	"github.com/openpai/paictl/pkg/cmd/token"
	"github.com/openpai/paictl/pkg/cmd/user"
	"github.com/openpai/paictl/pkg/cmd/vc"
	"github.com/openpai/paictl/pkg/cmd/version"
	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdRoot returns the root command with all subcommands.
func NewCmdRoot(f *cmdutil.Factory) *cobra.Command {
	var logFile string
	root := &cobra.Command{
		Use:   "paictl",
		Short: "From a list of IP addresses to a shared GPU cluster",
		Long: `paictl turns a list of machines into a Kubernetes cluster for AI jobs.

To make a first cluster from a list of addresses:
  paictl config generate -i quick-start.yaml -o ./cluster
  paictl cluster up -p ./cluster

To try it out, make three hosts on this machine (Linux, as root):
  paictl sandbox up --hosts 3`,
		Version:           version.Line(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(f.IO.In)
	root.SetOut(f.IO.Out)
	root.SetErr(f.IO.Err)
	root.PersistentFlags().StringVar(&logFile, "log-file", "", "append a debug log to this file (JSON lines, mode 0600)")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := emptyList(c); err != nil {
			return err
		}
		return openLog(f, logFile)
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 { // the flag may belong to a command of another program
			return unknownCommand(c, args)
		}
		return cmdutil.Usagef("%s%w (see %s --help)", prefix(c), flagError(c, err), c.CommandPath())
	})
	root.AddGroup(&cobra.Group{ID: "jobs", Title: "Jobs:"}, &cobra.Group{ID: "main", Title: "Cluster commands:"}, &cobra.Group{ID: "tools", Title: "Tools:"})
	root.SetHelpCommandGroupID("tools")
	root.SetCompletionCommandGroupID("tools")

	add := func(group string, cs ...*cobra.Command) {
		for _, c := range cs {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("jobs", job.NewCmdJob(f), login.NewCmdLogin(f), login.NewCmdLogout(f), login.NewCmdWhoami(f), notify.NewCmdNotify(f), report.NewCmdReport(f))
	add("main", config.NewCmdConfig(f))
	add("main", status.NewCmdStatus(f, nil), cluster.NewCmdCluster(f), node.NewCmdNode(f), service.NewCmdService(f), vc.NewCmdVC(f))
	add("main", user.NewCmdUser(f), group.NewCmdGroup(f), token.NewCmdToken(f), audit.NewCmdAudit(f), action.NewCmdAction(f), alert.NewCmdAlert(f))
	add("tools", bundle.NewCmdBundle(f), image.NewCmdImage(f))
	add("tools", sandbox.NewCmdSandbox(f), scheduler.NewCmdScheduler(f), rules.NewCmdRules(f))
	add("main", doctor.NewCmdDoctor(f))
	add("tools", migrate.NewCmdMigrate(f))
	add("tools", support.NewCmdSupportBundle(f))
	add("tools", version.NewCmdVersion(f, nil))
	root.AddCommand(docs.NewCmdDocs(f)) // hidden: for people who make packages
	// Cobra adds the commands help and completion when it runs the root command. They are added here so that mistakes in their arguments are
	// reported like those of other commands.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Run, c.RunE = nil, help
		}
	}
	usageErrors(root)
	return root
}

// help shows the help of the command whose name is args.
func help(c *cobra.Command, args []string) error {
	of, rest, err := c.Root().Find(args)
	if err == nil && len(rest) > 0 {
		return unknownCommand(of, rest)
	}
	if err != nil {
		return cmdutil.Usagef("%w (see %s --help)", err, of.CommandPath())
	}
	return of.Help()
}

// usageErrors makes commands return a UsageError for wrong arguments. For an unknown word after a group of commands, it makes the group return
// an error instead of printing the help text with exit code 0.
func usageErrors(c *cobra.Command) {
	if args := c.Args; args != nil {
		c.Args = func(cmd *cobra.Command, a []string) error {
			if err := args(cmd, a); err != nil {
				return cmdutil.Usagef("%s%w (see %s --help)", prefix(cmd), argsError(cmd, a, err), cmd.CommandPath())
			}
			return nil
		}
	}
	if c.HasSubCommands() && c.RunE == nil && c.Run == nil {
		c.Args = func(cmd *cobra.Command, a []string) error {
			if len(a) == 0 {
				return nil
			}
			return unknownCommand(cmd, a)
		}
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// emptyList returns an error if the value of a list flag is empty, as in --limit "". An unset variable in a script must not mean "all".
func emptyList(c *cobra.Command) (err error) {
	c.Flags().Visit(func(fl *pflag.Flag) {
		if list, ok := fl.Value.(pflag.SliceValue); ok && len(list.GetSlice()) == 0 && err == nil {
			err = cmdutil.Usagef("--%s is empty: leave it out, or name something (see %s --help)", fl.Name, c.CommandPath())
		}
	})
	return err
}

// openLog opens the debug log. Messages of client-go and Helm are also written to the log, because they would disturb the progress display on
// stderr.
func openLog(f *cmdutil.Factory, path string) error {
	defer func() { klog.SetSlogLogger(f.Log) }()
	if path == "" {
		return nil
	}
	w, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log file: %w", err)
	}
	f.Log = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return nil
}

// Main runs paictl with the given arguments, and returns its exit code.
func Main(ctx context.Context, f *cmdutil.Factory, args []string) int {
	args, note := alias.Rewrite(args)
	if note != "" {
		fmt.Fprintln(f.IO.Err, note)
		if args == nil {
			return cmdutil.ExitUsage
		}
	}
	root := NewCmdRoot(f)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && cmdutil.ExitCode(err) == cmdutil.ExitFailure {
		err = fmt.Errorf("%w (%w)", context.Canceled, err)
	}
	cmdutil.PrintError(f.IO.Err, err)
	return cmdutil.ExitCode(err)
}
