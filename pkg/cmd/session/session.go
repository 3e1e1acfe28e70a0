// Package session prepares the commands that work on the machines of a cluster.
// In: flags, settings and a configuration folder. Out: a checked configuration, the bundle, a dialer for the machines, and a renderer that shows
// progress.
package session

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/progress"
)

// Session is an opened configuration, with the connections to its machines and the options of the run.
type Session struct {
	Config *config.Cluster
	Spec   *engine.Spec
	// Options contains the options of a run. Commands add the values that only they know.
	Options engine.Options
	// Dialer connects to the machines. It is the same as Options.Dialer.
	Dialer ssh.Dialer
	// Release changes the Kubernetes version in the configuration. It is set only if Needs.Upgrade was set.
	Release *config.VersionEdit
	// NewBundle is the path of the bundle that Release writes into the configuration. It may be "".
	NewBundle string
	// Images changes the images of services to the images of this paictl. It is set only if Needs.Upgrade was set.
	Images *config.ServicesEdit

	client     *ssh.Client
	roundTrips func(host string) int
	bundle     *bundle.Bundle
	sink       *sink
	f          *cmdutil.Factory
	flags      *Flags
	needs      Needs
}

// Needs lists the parts of a session that a command requires.
type Needs struct {
	// Bundle opens the bundle, and checks every file in it that machines may receive.
	Bundle bool
	// Upgrade selects the Kubernetes release of the bundle instead of the release in the configuration. The files of the configuration aren't
	// changed until Session.Release is written.
	Upgrade bool
	// ReadOnly makes the SSH client reject scripts that would change a machine.
	ReadOnly bool
	// Reads means that the command only reads. Mistakes in the configuration are reported, and the command continues if the machines are still
	// known.
	Reads bool
	// Format determines how events are shown. "json" prints them as JSON lines on stdout. "quiet" prints only warnings and the hosts that are
	// set aside. Other values show the progress on stderr.
	Format string
}

// Open loads and checks the configuration, and opens the bundle if the command needs it. It doesn't connect to the machines yet. The caller must
// close the session.
func Open(ctx context.Context, f *cmdutil.Factory, fl *Flags, n Needs) (*Session, error) {
	check := catalogue.Check
	switch {
	case n.Upgrade:
		check = catalogue.CheckUpgrade
	case !n.Bundle:
		check = catalogue.CheckMachines
	}
	load := config.LoadValid
	if n.Reads {
		load = config.LoadReadable
	}
	c, warnings, err := load(fl.Dir, check)
	if err != nil {
		return nil, err
	}
	if !c.IsManaged() {
		return nil, hint.Errorf("change it with the tools that installed it; paictl's services run there: see paictl service --help",
			"the Kubernetes of %s was not installed by paictl (managed: false in %s), so its machines are left alone", fl.Dir, config.KubernetesFile)
	}
	if n.Upgrade {
		warnings = slices.DeleteFunc(warnings, func(f config.Finding) bool { return f.Rule == config.RuleVersion })
	}
	// Commands that only read don't print the warnings, which would be printed each time.
	if n.Bundle {
		if err := warnings.Warnings().Write(f.IO.Err); err != nil {
			return nil, err
		}
	}
	if err := tellMistakes(f, n, warnings); err != nil {
		return nil, err
	}
	s := &Session{Config: c, f: f, flags: fl, needs: n}
	if n.Bundle {
		if err := engine.CheckLimit(&c.Layout, fl.Limit); err != nil {
			return nil, &cmdutil.UsageError{Err: err}
		}
		if s.bundle, err = openBundle(ctx, fl.bundleDir(c)); err != nil {
			return nil, err
		}
	}
	if n.Upgrade {
		if s.Images, err = s.images(c); err != nil {
			return nil, err
		}
		s.NewBundle = fl.newBundle(c)
		if s.Release, err = config.SetKubernetesVersion(fl.Dir, s.bundle.Manifest().Kubernetes, s.NewBundle); err != nil {
			return nil, err
		}
		c = s.Release.Cluster
	}
	s.connectWith(n)
	return s, s.Use(ctx, c)
}

// tellMistakes prints the mistakes in a configuration that is only read. If the run compares machines with the bundle, or repairs machines,
// mistakes in files other than services-configuration.yaml are returned as an error.
func tellMistakes(f *cmdutil.Factory, n Needs, found config.Findings) error {
	mistakes := found.Errors()
	if len(mistakes) == 0 {
		return nil
	}
	if (n.Bundle || !n.ReadOnly) && slices.ContainsFunc(mistakes, func(m config.Finding) bool { return filepath.Base(m.File) != config.ServicesFile }) {
		return mistakes
	}
	fmt.Fprintf(f.IO.Err, "warning: the configuration has %s; the command continues without these sections:\n", plural.Of(len(mistakes), "mistake"))
	return mistakes.Write(f.IO.Err)
}

// images returns the edit that changes the images of services to the images of this paictl. It returns an error if the bundle contains other
// versions of these images.
func (s *Session) images(c *config.Cluster) (*config.ServicesEdit, error) {
	fields, tag, _, err := catalogue.OtherRelease(c)
	if err != nil {
		return nil, err
	}
	for _, a := range s.bundle.List(bundle.KindImage) {
		name, own := strings.CutPrefix(a.Image, bundle.OwnRegistry+"/pai-")
		if _, has, _ := strings.Cut(name, ":"); own && has != tag && len(fields) > 0 {
			return nil, hint.Errorf("build it with this paictl: paictl bundle build; or write the tags of the bundle's images into "+config.ServicesFile,
				"the images of services would become those of %s, and the bundle has those of %s", tag, has)
		}
	}
	e, err := config.SetServicesText(s.flags.Dir, fields, tag)
	if err != nil {
		return nil, err
	}
	for _, field := range e.NotEdited {
		fmt.Fprintf(s.f.IO.Err, "warning: %s: %s names images of another release, and can't be changed without harm to its style\n  -> write %s there by hand, before paictl config push\n",
			config.ServicesFile, field, tag)
	}
	return e, nil
}

// Use gives the session another configuration, for example after a command has changed the files. The connections stay open, but a new progress
// display begins.
func (s *Session) Use(ctx context.Context, c *config.Cluster) error {
	if s.sink != nil {
		if err := s.sink.Close(); err != nil {
			return err
		}
	}
	spec, err := engine.NewSpec(c, s.bundle)
	if err != nil {
		return err
	}
	s.Config, s.Spec = c, spec
	s.sink = &sink{open: func() progress.Renderer { return s.renderer(ctx, s.needs.Format) }, hello: hello(s.f, s.needs.Format)}
	fl := s.flags
	s.Options = engine.Options{
		Dialer: s.client, Sink: s.sink, Clock: time.Now, Command: fl.command, Owner: owner(),
		DryRun: s.needs.ReadOnly, Limit: fl.Limit, Parallel: fl.Parallel, NoPeers: fl.NoPeers, RoundTrips: s.roundTrips,
		Copy: pushedCopy(fl.Dir),
	}
	return nil
}

// UseBundle opens the bundle in a session that was opened without a bundle.
func (s *Session) UseBundle(ctx context.Context) error {
	b, err := openBundle(ctx, s.flags.bundleDir(s.Config))
	if err == nil {
		s.bundle = b
	}
	return err
}

// UpCommand returns the "cluster up" command for the same folders as this command.
func (s *Session) UpCommand() string { return s.flags.up }

// Again returns the command line as a user would type it again with other arguments.
func (s *Session) Again(args []string) string { return s.flags.again(args) }

// connectWith creates the SSH client. If there is a terminal, the client asks the user about the keys of unknown hosts, and for passphrases.
// Otherwise it rejects unknown hosts, unless a flag allows them.
func (s *Session) connectWith(n Needs) {
	counter := &ssh.Counter{}
	o := ssh.Options{Tracer: ssh.Tracers{counter, ssh.SlogTracer{Log: s.f.Log}}}
	if n.ReadOnly {
		o.Gate = ssh.DryRunGate{}
	}
	if s.flags.AcceptNew {
		o.HostKeys = ssh.HostKeyAcceptNew
	}
	o.Warn = func(text string) { s.f.IO.Say("warning: %s", text) }
	if s.f.IO.CanPrompt() {
		p := &prompt.Person{IO: s.f.IO}
		o.Confirm, o.Prompt = p.ConfirmKey, p.AskSecret
	}
	s.client = ssh.NewClient(o)
	s.Dialer = s.client
	s.roundTrips = func(host string) int { return counter.Host(host).RoundTrips }
}

// Close restores the terminal, and closes all connections. It returns the first error that occurred when events were written.
func (s *Session) Close() error {
	err := s.CloseSink()
	_ = s.client.Close() // the run has ended, and an error would have no effect
	return err
}

// CloseSink ends the progress display, so that the command can print its output.
func (s *Session) CloseSink() error { return s.sink.Close() }

// openBundle opens the bundle and verifies the checksums of its artifacts, so that damaged files are found before a machine is changed.
func openBundle(ctx context.Context, dir string) (*bundle.Bundle, error) {
	b, err := bundle.Open(dir)
	if err != nil {
		return nil, err
	}
	needed := slices.DeleteFunc(b.List(""), func(a bundle.Artifact) bool { return a.Kind == bundle.KindTool })
	return b, b.VerifyArtifacts(ctx, needed)
}

// owner returns the name of this run in the cluster's lock.
func owner() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("%s@%s, pid %d", name, host, os.Getpid())
}
