package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// TestOptions are the options of "paictl notify test".
type TestOptions struct {
	Options
	Timeout time.Duration
	// Every is the time between two checks. 0 means one second.
	Every time.Duration
}

// NewCmdTest returns "paictl notify test".
func NewCmdTest(f *cmdutil.Factory) *cobra.Command {
	opts := &TestOptions{}
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send yourself a test message",
		Long: `Has the alert handler send a test message to your mail address and your webhook, and waits until the servers have taken it.
Whether a mail server delivers it isn't known: look into your mailbox.`,
		Example: `  paictl notify test`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.run(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", time.Minute, "wait no longer than this")
	opts.addFlags(f, cmd)
	return cmd
}

func (o *TestOptions) run(ctx context.Context) error {
	s, name, err := o.open(ctx)
	if err != nil {
		return err
	}
	n, err := s.TestNotifications(ctx, name)
	if err != nil {
		return err
	}
	if n.MailTest == "" && n.WebhookTest == "" {
		return hint.Errorf("see: paictl notify show", "no message is sent: %s", cmp.Or(append(n.Problems, "mails are off, and there is no webhook")...))
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	tick := time.NewTicker(cmp.Or(o.Every, time.Second))
	defer tick.Stop()
	for !settled(n) {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return o.report(n)
			}
			return ctx.Err()
		case <-tick.C:
		}
		now, err := s.Notifications(ctx, name)
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			return err
		}
		n = now
	}
	return o.report(n)
}

// settled reports whether the results of a test message will not change any further.
func settled(n *api.Notifications) bool {
	final := func(r string) bool { return r != "waiting" && r != "unknown" }
	return final(n.MailTest) && final(n.WebhookTest)
}

// report prints the results of a test message. It returns an error that lists the channels that haven't accepted the message.
func (o *TestOptions) report(n *api.Notifications) (failed error) {
	for _, c := range [][2]string{{"mail", n.MailTest}, {"webhook", n.WebhookTest}} {
		why := map[string]string{"waiting": "isn't sent yet; it is retried for a day", "unknown": "may have arrived; the server didn't answer", "skipped": "isn't sent: the account has no valid e-mail address",
			"lost": "couldn't be sent"}[c[1]]
		if why != "" {
			failed = errors.Join(failed, errNotSent(c[0], why))
		}
		if c[1] == "sent" && o.Output.Is("text") {
			fmt.Fprintf(o.Factory.IO.Out, "%s: sent\n", c[0])
		}
	}
	if !o.Output.Is("text") {
		return errors.Join(failed, o.Output.Write(o.Factory.IO.Out, n, cmdutil.Table{}))
	}
	return failed
}
