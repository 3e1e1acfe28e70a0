package alert

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/server/v3/api"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// SilenceOptions are the options of "paictl alert silence".
type SilenceOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Match      []string
	For        time.Duration
	Reason     string
	// Matchers are the conditions on labels, parsed from the name of the alert and from Match.
	Matchers []api.Matcher
}

// defaultSilence is how long a silence lasts if --for is missing.
const defaultSilence = 2 * time.Hour

// NewCmdSilence returns "paictl alert silence".
func NewCmdSilence(f *cmdutil.Factory) *cobra.Command {
	opts := &SilenceOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "silence [NAME]",
		Short: "Silence alerts for a time",
		Long: `Keeps the notifications of alerts back until the time has passed. All of the labels have to match: NAME is that of the
alert, and --match gives further ones as LABEL=VALUE, LABEL=~REGEX, LABEL!=VALUE or LABEL!~REGEX. A regular expression
matches the whole value. "paictl alert list" shows the labels of alerts. Alerts that begin to fire later are silenced, too.

Only administrators can silence alerts. The audit has a record of each silence.`,
		Example: `  paictl alert silence NodeDown --match node=gpu-1 --for 4h --reason "its memory is replaced"
  paictl alert silence --match 'node=~gpu-[1-4]' --for 24h --reason "the rack is moved"
  paictl alert silence JobGpusIdle --match user=ann --reason "she debugs" -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeAlerts(f, &opts.Connection),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(args); err != nil {
				return err
			}
			return silenceRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&opts.Match, "match", nil, "a label that alerts must have: LABEL=VALUE, LABEL=~REGEX, LABEL!=VALUE, LABEL!~REGEX; can be repeated")
	fl.DurationVar(&opts.For, "for", defaultSilence, "time until the silence ends, from 1m to 2160h")
	fl.StringVar(&opts.Reason, "reason", "", "why, in one sentence (required)")
	opts.Connection.AddFlags(f, cmd)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

var matcher = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)(=~|!~|!=|=)(.*)$`)

func (opts *SilenceOptions) check(args []string) error {
	for _, name := range args {
		opts.Matchers = append(opts.Matchers, api.Matcher{Label: "alertname", Value: name})
	}
	for _, text := range opts.Match {
		m := matcher.FindStringSubmatch(text)
		if m == nil {
			return cmdutil.Usagef("--match %q: write LABEL=VALUE, LABEL=~REGEX, LABEL!=VALUE or LABEL!~REGEX", text)
		}
		opts.Matchers = append(opts.Matchers, api.Matcher{Label: m[1], Value: m[3], Regex: strings.HasSuffix(m[2], "~"), Not: strings.HasPrefix(m[2], "!")})
	}
	switch {
	case len(opts.Matchers) == 0:
		return cmdutil.Usagef("say which alerts: NAME, --match LABEL=VALUE, or both")
	case opts.For < time.Minute:
		return cmdutil.Usagef("--for %s: give a minute or more, such as 4h", opts.For)
	case strings.TrimSpace(opts.Reason) == "":
		return cmdutil.Usagef("say why: --reason TEXT")
	}
	return nil
}

func silenceRun(ctx context.Context, opts *SilenceOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	s, err := w.Server.Silence(ctx, api.NewSilence{Matchers: opts.Matchers, Seconds: int64(opts.For / time.Second), Reason: opts.Reason})
	if err != nil {
		return err
	}
	if !opts.Output.Is("text") {
		return opts.Output.Write(opts.Factory.IO.Out, s, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "silenced for %s: %s (%s)\nEnd it with: paictl alert unsilence %s\n", job.Duration(s.Ends.Sub(s.Starts)), terminal.Line(matchers(s.Matchers)), plural.Of(s.Alerts, "firing alert"), s.ID)
	return err
}
