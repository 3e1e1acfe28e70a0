package status

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ssh"
)

const (
	journalTail  = 1000
	journalEvery = 2 * time.Second
	cursorMark   = "-- cursor: "
)

// journal reads the journals of machines in a configuration folder. It never asks the user, because the view uses the terminal.
type journal struct {
	dir  string
	log  *slog.Logger
	dial ssh.Dialer // nil is the network
}

// follow writes the last lines of a machine's journal, and then all new lines, until ctx ends.
func (j journal) follow(ctx context.Context, machine string, out io.Writer) error {
	target, err := j.target(machine)
	if err != nil {
		return err
	}
	dial := j.dial
	if dial == nil {
		client := ssh.NewClient(ssh.Options{Gate: ssh.DryRunGate{}, Tracer: ssh.SlogTracer{Log: j.log},
			Warn: func(text string) { _, _ = fmt.Fprintf(out, "warning: %s\n", text) }}) // the next write has the error
		defer func() { _ = client.Close() }() // nothing was written
		dial = client
	}
	host, err := dial.Dial(ctx, target)
	if err != nil {
		return err
	}
	defer func() { _ = host.Close() }() // as above
	for since := fmt.Sprintf("-n %d", journalTail); ; {
		r, err := host.Run(ctx, ssh.Script{Name: "status/journal", Body: "journalctl --no-pager --quiet -o short-iso --show-cursor " + since + "\n"})
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return fmt.Errorf("journalctl on %s: exit status %d: %s", machine, r.ExitCode, strings.TrimSpace(string(r.Stderr)))
		}
		lines, cursor := cutCursor(r.Stdout)
		if _, err := out.Write(lines); err != nil {
			return err
		}
		if cursor != "" {
			since = "--after-cursor='" + cursor + "'"
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(journalEvery):
		}
	}
}

func (j journal) target(machine string) (ssh.Target, error) {
	c, _, err := config.LoadReadable(j.dir, catalogue.CheckMachines)
	if err != nil {
		return ssh.Target{}, err
	}
	spec, err := engine.NewSpec(c, nil)
	if err != nil {
		return ssh.Target{}, err
	}
	for _, n := range spec.Nodes {
		if n.Hostname == machine {
			return n.Target, nil
		}
	}
	return ssh.Target{}, hint.Errorf("its machines: paictl node list -p "+hint.Quote(j.dir), "%s is not a machine of the configuration in %s", machine, j.dir)
}

// cutCursor removes the cursor from the end of journalctl's output. It returns no cursor if the shell could interpret it as more than one word.
func cutCursor(out []byte) (lines []byte, cursor string) {
	at := bytes.LastIndex(out, []byte(cursorMark))
	if at < 0 || at > 0 && out[at-1] != '\n' {
		return out, ""
	}
	cursor = strings.TrimSpace(string(out[at+len(cursorMark):]))
	if strings.ContainsAny(cursor, "'\n\\") {
		cursor = ""
	}
	return out[:at], cursor
}
