package config

import (
	"time"

	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ssh"
)

// client returns an SSH client for the machines. The client rejects scripts that would change the machines.
func client(f *cmdutil.Factory, acceptNew bool, timeout time.Duration) *ssh.Client {
	o := ssh.Options{Gate: ssh.DryRunGate{}, Tracer: ssh.SlogTracer{Log: f.Log}, DialTimeout: timeout, ScriptTimeout: timeout}
	if acceptNew {
		o.HostKeys = ssh.HostKeyAcceptNew
	}
	o.Warn = func(text string) { f.IO.Say("warning: %s", text) }
	if f.IO.CanPrompt() {
		p := &prompt.Person{IO: f.IO, Before: prompt.ClearLine}
		o.Confirm, o.Prompt = p.ConfirmKey, p.AskSecret
	}
	return ssh.NewClient(o)
}
