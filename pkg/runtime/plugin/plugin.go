// Package plugin runs the plugins that a job may have around its commands: cmd, ssh, tensorboard, git and
// teamwise_storage.
// In: the plugins of a role, the job's layout. Out: programs that were run before and after.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/exit"
	"github.com/openpai/paictl/pkg/runtime/process"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Run holds a task's data for plugins.
type Run struct {
	Layout  *env.Layout
	Environ []string
	// Home is spec.Home except in tests. UserHome is the home folder of the container's user.
	Home, UserHome string
	Dir            string // the folder in which commands run
	Reaper         *process.Reaper
	Signals        *process.Signals
	Grace          time.Duration
	Log            func(format string, args ...any)
	// Output returns a file for the output of a plugin's program. The caller calls the returned function when the program has
	// ended or runs in the background.
	Output func() (*os.File, func(), error)
	// Self is the path of the runtime's own program.
	Self string
}

type plugin interface {
	// pre runs before the job's commands.
	pre(ctx context.Context, r *Run) error
	// post runs after the job's commands if they succeeded.
	post(ctx context.Context, r *Run) error
}

// kinds maps the name of a plugin to its constructor.
var kinds = map[string]func() plugin{
	"cmd":              func() plugin { return &cmd{} },
	"git":              func() plugin { return &git{} },
	"ssh":              func() plugin { return &ssh{} },
	"tensorboard":      func() plugin { return &tensorboard{} },
	"teamwise_storage": func() plugin { return &storage{} },
}

// Plugins holds the plugins of a task, with decoded parameters.
type Plugins struct {
	list []entry
	run  *Run
}

type entry struct {
	plugin
	spec  spec.Plugin
	shown string // the name and number in messages
}

// New decodes the parameters of all plugins. An error in any plugin is found before the first plugin runs.
func New(list []spec.Plugin, r *Run) (*Plugins, error) {
	p := &Plugins{run: r}
	for i, s := range list {
		e := entry{spec: s, shown: fmt.Sprintf("plugin %d (%s)", i+1, s.Name)}
		var err error
		if e.plugin, err = read(s); err != nil {
			err = fmt.Errorf("%s: %w", e.shown, err)
			if !s.IgnoreFailure {
				return nil, err
			}
			r.Log("%v; it is skipped, because of its failurePolicy", err)
			continue
		}
		p.list = append(p.list, e)
	}
	return p, nil
}

func read(s spec.Plugin) (plugin, error) {
	kind, ok := kinds[s.Name]
	if !ok {
		return nil, errors.New("there is no such plugin; there are cmd, git, ssh, tensorboard and teamwise_storage")
	}
	p := kind()
	if len(bytes.TrimSpace(s.Parameters)) > 0 && !bytes.Equal(s.Parameters, []byte("null")) {
		if err := json.Unmarshal(s.Parameters, p); err != nil {
			return nil, parameterError(err)
		}
	}
	if c, ok := p.(interface{ check() error }); ok {
		return p, c.check()
	}
	return p, nil
}

// parameterError returns an error that contains the name of the field. It omits the value, because the value may be a secret.
func parameterError(err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("parameter %s is not a %s", kind.Field, kind.Type)
	}
	return errors.New("its parameters can't be read")
}

// Pre runs the plugins' steps before the commands, in order.
func (p *Plugins) Pre(ctx context.Context) error {
	for _, e := range p.list {
		if ctx.Err() != nil {
			return exit.OfProgram(exit.Stopped, fmt.Errorf("%w before %s", process.ErrStopped, e.shown))
		}
		if err := p.handle(ctx, e, "", e.pre(ctx, p.run)); err != nil {
			return err
		}
	}
	return nil
}

// Post runs the plugins' steps after the commands, in reverse order.
func (p *Plugins) Post(ctx context.Context) error {
	for i := len(p.list) - 1; i >= 0; i-- {
		if err := p.handle(ctx, p.list[i], " after the commands", p.list[i].post(ctx, p.run)); err != nil {
			return err
		}
	}
	return nil
}

// handle applies the failurePolicy to an error of a plugin. It doesn't report a plugin failure if the task was stopped.
func (p *Plugins) handle(ctx context.Context, e entry, when string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return exit.OfProgram(exit.Stopped, fmt.Errorf("%w during %s%s", process.ErrStopped, e.shown, when))
	case e.spec.IgnoreFailure:
		p.run.Log("%s%s: %v; continuing, because of its failurePolicy", e.shown, when, err)
		return nil
	}
	return fmt.Errorf("%s%s: %w", e.shown, when, err)
}

// command runs a program of a plugin until the program exits, and writes its output to the journal. Background processes of the
// program continue to run.
func (r *Run) command(args []string, environ []string) error {
	out, closeOut, err := r.Output()
	if err != nil {
		return err
	}
	p, err := r.Reaper.Start(process.Command{Args: args, Dir: r.Dir, Env: environ, Stdout: out, Stderr: out})
	if err != nil {
		closeOut()
		return err
	}
	o := r.Signals.Supervise(p, r.Grace)
	closeOut()
	if o.Code != 0 {
		return exit.OfProgram(o.Code, fmt.Errorf("%s ended with code %d", args[0], o.Code))
	}
	return nil
}

// background starts a program of a plugin that runs beside the job's commands.
func (r *Run) background(args []string, environ []string, stdin *os.File) error {
	out, closeOut, err := r.Output()
	if err != nil {
		return err
	}
	defer closeOut()
	_, err = r.Reaper.Start(process.Command{Args: args, Dir: r.Dir, Env: environ, Stdin: stdin, Stdout: out, Stderr: out})
	return err
}

// ask runs a program and returns its output. It returns an error if the exit code isn't 0.
func (r *Run) ask(ctx context.Context, args []string) (string, error) {
	out, code, err := r.Reaper.Output(ctx, process.Command{Args: args, Dir: r.Dir, Env: r.Environ})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s ended with code %d", args[0], code)
	}
	return out, err
}

// script writes shell commands to a file and runs the file. As an argument, the commands would be visible in process lists and
// limited to 128 KiB.
func (r *Run) script(name, text string) error {
	file := filepath.Join(r.Home, "runtime.d", name)
	args, text, err := Shell(nil, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		return err
	}
	return r.command(append(args, file), r.Environ)
}

// flag is a JSON boolean or a string with a boolean.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	v, err := strconv.ParseBool(string(bytes.Trim(data, `"`)))
	if err != nil {
		return errors.New("true or false expected")
	}
	*f = flag(v)
	return nil
}
