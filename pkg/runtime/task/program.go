package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/plugin"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// maxLog is how many bytes of the program's output are kept for the failure rules.
const maxLog = rules.MaxLog

func (t *task) grace() time.Duration {
	if t.spec.GracePeriodSec > 0 {
		return time.Duration(t.spec.GracePeriodSec) * time.Second
	}
	return defaultGrace
}

func (t *task) program() (result, error) {
	if t.signals.Context().Err() != nil {
		return result{}, exit.OfProgram(exit.Stopped, fmt.Errorf("%w before its commands", process.ErrStopped))
	}
	args, err := t.command()
	if err != nil {
		return result{}, t.unstarted(err)
	}
	stdout, outPipe, err := process.NewStream(t.Stdout, t.userTail)
	if err != nil {
		return result{}, err
	}
	stderr, errPipe, err := process.NewStream(t.journal.Stderr(), t.userTail)
	if err != nil {
		return result{}, errors.Join(err, stdout.Close(), outPipe.Close())
	}
	t.oomKills = oomKills(memoryEvents)
	p, err := t.reaper.Start(process.Command{Args: args, Dir: t.dir, Env: t.environ, Stdout: outPipe, Stderr: errPipe})
	_, _ = outPipe.Close(), errPipe.Close() // the program has inherited them, or didn't start
	t.streams = []*process.Stream{stdout, stderr}
	if err != nil {
		return result{}, t.unstarted(err)
	}
	o := t.signals.Supervise(p, t.grace())
	// Don't close the pipes, because background processes may continue to write to the log.
	if err := errors.Join(stdout.Drain(), stderr.Drain()); err != nil {
		t.journal.Printf("the end of the program's output may be missing: %v", err)
	}
	return result{code: o.Code, stopped: o.Stopped}, nil
}

// unstarted writes the reason why a program couldn't be started to the program's output, as a shell does. The failure rules
// search this output.
func (t *task) unstarted(err error) error {
	fmt.Fprintln(t.userTail, err)
	return err
}

// command returns the job's program with its arguments, or a shell and the script with the job's commands.
func (t *task) command() ([]string, error) {
	if len(t.role.Exec) > 0 {
		return t.role.Exec, nil
	}
	args, text, err := plugin.Shell(t.role.Shell, t.role.Command)
	if err != nil {
		return nil, err
	}
	name := t.path(spec.Home + "/runtime.d/user.sh")
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		return nil, fmt.Errorf("write the job's commands: %w", err)
	}
	return append(args, name), nil
}

func (t *task) pluginRun() *plugin.Run {
	return &plugin.Run{
		Layout: t.layout, Environ: t.environ, Home: t.path(spec.Home), UserHome: t.userHome(), Dir: t.dir,
		Reaper: t.reaper, Signals: t.signals, Grace: t.grace(), Log: t.journal.Printf, Output: t.pluginOutput, Self: t.Self,
	}
}

// pluginOutput returns a pipe to the journal.
func (t *task) pluginOutput() (*os.File, func(), error) {
	w := t.journal.Writer()
	s, out, err := process.NewStream(w, io.Discard)
	if err != nil {
		return nil, nil, err
	}
	return out, func() {
		_ = out.Close()
		if err := s.Drain(); err != nil {
			t.journal.Printf("the end of a plugin's output may be missing: %v", err)
		}
		w.Flush()
	}, nil
}
