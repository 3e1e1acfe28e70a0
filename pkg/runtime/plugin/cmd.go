package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// cmd is the plugin that runs shell commands before and after the job's commands.
type cmd struct {
	PreCommands  []string `json:"preCommands"`
	PostCommands []string `json:"postCommands"`
	Callbacks    []struct {
		Event    string   `json:"event"`
		Commands []string `json:"commands"`
	} `json:"callbacks"`
}

func (c *cmd) check() error {
	if len(c.Callbacks) > 0 && len(c.PreCommands)+len(c.PostCommands) > 0 {
		return errors.New("give either callbacks or preCommands and postCommands")
	}
	for _, b := range c.Callbacks {
		switch b.Event {
		case "taskStarts":
			c.PreCommands = append(c.PreCommands, b.Commands...)
		case "taskSucceeds":
			c.PostCommands = append(c.PostCommands, b.Commands...)
		default:
			return fmt.Errorf("there is no event %q; there are taskStarts and taskSucceeds", b.Event)
		}
	}
	return nil
}

func (c *cmd) pre(_ context.Context, r *Run) error { return runAll(r, "precommands.sh", c.PreCommands) }

func (c *cmd) post(_ context.Context, r *Run) error {
	return runAll(r, "postcommands.sh", c.PostCommands)
}

func runAll(r *Run, name string, commands []string) error {
	if len(commands) == 0 {
		return nil
	}
	return r.script(name, strings.Join(commands, "\n"))
}

// storage is OpenPAI's plugin for shared storage. It does nothing, because jobs use volumes instead.
type storage struct{}

func (*storage) pre(_ context.Context, r *Run) error {
	r.Log("teamwise_storage does nothing: the job's storages are mounted as volumes")
	return nil
}

func (*storage) post(context.Context, *Run) error { return nil }
