// Package login contains the commands "paictl login", "logout" and "whoami", which sign in to the platform's server and show the signed-in user.
// In: the address of a server, a user name and a password. Out: tokens in a file of the user, and messages.
package login

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/browser"
	"github.com/openpai/paictl/pkg/client/login"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Options are the options of "paictl login".
type Options struct {
	Factory *cmdutil.Factory
	// At is the address of a server, or the name of a cluster where the user has signed in before.
	At       string
	Name     string
	User     string
	Password bool
	CA       string
	// Fingerprint is the fingerprint of the CA that signs the server's certificate.
	Fingerprint string
	// Device means that the user signs in with a browser on another machine. NoBrowser means that no browser is opened on this machine.
	Device    bool
	NoBrowser bool
	// Open opens an address in the user's browser. Wait pauses for a duration.
	Open func(ctx context.Context, address string) error
	Wait func(context.Context, time.Duration) error
}

// NewCmdLogin returns "paictl login".
func NewCmdLogin(f *cmdutil.Factory) *cobra.Command {
	opts := &Options{Factory: f, Open: browser.Open, Wait: browser.Wait}
	cmd := &cobra.Command{
		Use:   "login [URL|NAME]",
		Short: "Sign in at a cluster's server, to run jobs without a kubeconfig",
		Long: `Signs in at the server of a cluster (the service rest-server). From then on, "paictl job" asks that server as
you, until you sign out; --kubeconfig and --context still use a kubeconfig.

If a browser can be opened here, paictl opens a page of the server, where you sign in as the cluster allows:
with a password, or at your site's own sign-in. Otherwise it asks for your user name and password, if the cluster
allows passwords. --device shows a code instead, which you type into a browser on any other machine, or pass to
"paictl token approve" on a machine where you are signed in.
--no-browser opens no browser. With --user or --password you sign in with a password, which is read from the
terminal, or from standard input if it isn't a terminal.

The password is not stored. paictl stores a session in the file clusters.yaml of its configuration folder,
which only you can read. A session ends 30 days after it was last used.

If no authority that this machine trusts has signed the server's certificate, paictl shows the fingerprint of the
certificate's authority and asks you to confirm it. Compare it with the one that "paictl service start -n rest-server"
printed, or pass that one with --fingerprint. paictl then trusts this authority for this cluster only.

You can be signed in at several clusters. Each has a name; the last one you signed in at is used, unless
--server or PAICTL_SERVER names another. "paictl login NAME" changes to one where you are signed in.

Programs set PAICTL_SERVER to the address and PAICTL_TOKEN to a token, which is never stored. If the system doesn't
trust the server's authority, they also set PAICTL_CA to a file with its certificate.`,
		Example: `  paictl login https://gpu.example.org
  paictl login https://10.0.0.1 --name lab --user ann
  paictl login https://gpu.example.org --device
  paictl login https://10.0.0.1 --user ann --fingerprint 5B:0E:…:9A < password.txt
  paictl login lab`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return connection.Names(f), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.At = args[0]
			}
			if opts.Device && (opts.Password || opts.User != "") {
				return cmdutil.Usagef("give --device, or --user and --password, not both")
			}
			if opts.CA != "" && opts.Fingerprint != "" {
				return cmdutil.Usagef("give --ca or --fingerprint, not both")
			}
			return loginRun(cmd.Context(), opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&opts.Name, "name", "", "name of the cluster on this machine (default: its host)")
	fl.StringVarP(&opts.User, "user", "u", "", "your user name (default: asked for)")
	fl.BoolVar(&opts.Password, "password", false, "sign in with a password")
	fl.BoolVar(&opts.Device, "device", false, "sign in by a browser on another machine, with a code")
	fl.BoolVar(&opts.NoBrowser, "no-browser", false, "don't open a browser on this machine")
	fl.StringVar(&opts.CA, "ca", "", "file with the certificate of the authority that signs the server's")
	fl.StringVar(&opts.Fingerprint, "fingerprint", "", "SHA-256 of the authority's certificate, as \"service start\" printed it")
	_ = cmd.MarkFlagFilename("ca", "crt", "pem")
	return cmd
}

// target is the server where the user signs in.
type target struct {
	name string
	url  *url.URL
	// known is the entry of the server in the file with the user's sign-ins. It is nil if the file contains no entry for the server.
	known *login.Cluster
}

func loginRun(ctx context.Context, opts *Options) error {
	store := connection.Store(opts.Factory)
	file, err := store.Read()
	if err != nil {
		return err
	}
	t, err := opts.target(file)
	if err != nil {
		return err
	}
	if done, err := opts.change(ctx, store, t); done || err != nil {
		return err
	}
	ca, err := opts.trust(ctx, t)
	if err != nil {
		return err
	}
	s, err := client.New(client.Options{URL: t.url.String(), CA: ca, Version: opts.Factory.Version})
	if err != nil {
		return err
	}
	if _, err := s.Version(ctx); err != nil { // before a password is sent to a different server
		return err
	}
	name, pair, err := opts.enter(ctx, s, t)
	if err != nil {
		return err
	}
	before := secret.String("")
	err = store.Change(ctx, func(f *login.File) error {
		if c := f.Clusters[t.name]; c != nil {
			before = c.Refresh
		}
		f.Clusters[t.name] = &login.Cluster{Server: t.url.String(), CA: string(ca), User: name, Access: pair.Access, Refresh: pair.Refresh,
			Expires: time.Now().Add(time.Duration(pair.Lifetime) * time.Second)}
		f.Current = t.name
		return nil
	})
	if err != nil {
		return errors.Join(err, s.Revoke(ctx, pair.Refresh)) // otherwise the tokens would remain valid, but unused
	}
	opts.Factory.IO.Say("you are signed in as %s at %s (%s)", name, t.name, t.url)
	if before.IsSet() {
		if err := s.Revoke(ctx, before); err != nil {
			opts.Factory.IO.Say("warning: the session before this one could not be ended: %v", err)
		}
	}
	return nil
}

// target determines the server where the user signs in, and the name of its cluster.
func (opts *Options) target(file *login.File) (*target, error) {
	at := cmp.Or(opts.At, file.Current)
	if at == "" {
		return nil, cmdutil.Usagef("name the server: paictl login https://HOST (see paictl login --help)")
	}
	t := &target{name: opts.Name}
	if c := file.Clusters[at]; c != nil {
		t.known, t.name = c, cmp.Or(t.name, at)
		at = c.Server
	}
	var err error
	if t.url, err = client.ParseURL(at); err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	if t.name == "" {
		t.name = cmp.Or(file.At(t.url.String()), login.DefaultName(t.url.Host))
	}
	if err := login.CheckName(t.name); err != nil {
		return nil, &cmdutil.UsageError{Err: err}
	}
	if c := file.Clusters[t.name]; c != nil && c.Server != t.url.String() {
		return nil, hint.Errorf("choose another name with --name, or remove it: paictl logout "+t.name+" --forget", "%s is the name of %s already", t.name, c.Server)
	} else if c != nil {
		t.known = c
	}
	return t, nil
}

// change makes a cluster the current cluster if the user is already signed in there, and if no flag requests another sign-in. done reports
// whether it did so.
func (opts *Options) change(ctx context.Context, store login.Store, t *target) (done bool, err error) {
	if opts.At != t.name || t.known == nil || !t.known.Refresh.IsSet() || opts.User != "" || opts.Device || opts.Password || opts.CA != "" || opts.Fingerprint != "" {
		return false, nil
	}
	renewer, err := client.New(client.Options{URL: t.known.Server, CA: []byte(t.known.CA), Version: opts.Factory.Version})
	if err != nil {
		return false, err
	}
	if _, err := (&login.Session{Store: store, Name: t.name, Server: renewer}).Access(ctx); err != nil {
		return false, nil //nolint:nilerr // the user signs in again
	}
	err = store.Change(ctx, func(f *login.File) error {
		f.Current = t.name
		return nil
	})
	if err == nil {
		opts.Factory.IO.Say("you are signed in as %s at %s (%s)", t.known.User, t.name, t.url)
	}
	return true, err
}

// trust returns the CA that must have signed the server's certificate. It returns nil if the CAs of the system are used.
func (opts *Options) trust(ctx context.Context, t *target) (ca []byte, err error) {
	if opts.CA != "" {
		if ca, err = os.ReadFile(opts.CA); err != nil {
			return nil, err
		}
		return ca, nil
	}
	if t.known != nil && t.known.CA != "" && opts.Fingerprint == "" {
		return []byte(t.known.CA), nil
	}
	want := ""
	if opts.Fingerprint != "" {
		if want, err = client.ParseFingerprint(opts.Fingerprint); err != nil {
			return nil, &cmdutil.UsageError{Err: err}
		}
	}
	shown, err := client.UntrustedCertificate(ctx, t.url)
	switch {
	case err != nil:
		return nil, err
	case shown == nil && want != "":
		return nil, hint.Errorf("remove --fingerprint if that is right", "the certificate of %s is signed by an authority that this machine trusts, and not by the one of the fingerprint", t.url.Host)
	case shown == nil:
		return nil, nil
	case want == shown.Fingerprint():
		return shown.PEM(), nil
	case want != "":
		return nil, hint.Errorf("check the address, and that the fingerprint is this cluster's; another program may answer in place of the server",
			"the authority of %s has another fingerprint: %s", t.url.Host, shown.Fingerprint())
	}
	io := opts.Factory.IO
	if !io.CanPrompt() {
		return nil, hint.Errorf("compare it with the fingerprint that \"paictl service start -n rest-server\" printed, then add: --fingerprint "+shown.Fingerprint(),
			"this machine doesn't trust the authority of %s", t.url.Host)
	}
	io.Say("This machine doesn't trust the authority that signed the certificate of %s. Its fingerprint (SHA-256) is\n  %s", t.url.Host, shown.Fingerprint())
	if err := prompt.Confirm(io, false, "the authority of "+t.url.Host, "Is it what \"paictl service start -n rest-server\" printed?"); err != nil {
		return nil, err
	}
	return shown.PEM(), nil
}

// maxPassword limits the length of a password that is read, in bytes. Every valid password is shorter.
const maxPassword = 4 << 10

// ask prompts for the user name and the password.
func (opts *Options) ask(t *target) (name string, password secret.String, err error) {
	io := opts.Factory.IO
	name = opts.User
	if !io.CanPrompt() {
		if name == "" {
			return "", "", cmdutil.Usagef("say who signs in: --user NAME")
		}
		password, err = firstLine(io.In)
		return name, password, err
	}
	if name == "" {
		usual := ""
		if t.known != nil {
			usual = t.known.User
		}
		question := "User: "
		if usual != "" {
			question = fmt.Sprintf("User [%s]: ", usual)
		}
		fmt.Fprint(io.Err, question)
		answer, err := prompt.Line(io.In)
		if err != nil {
			return "", "", err
		}
		if name = cmp.Or(answer, usual); name == "" {
			return "", "", cmdutil.Usagef("say who signs in: --user NAME")
		}
	}
	password, err = (&prompt.Person{IO: io}).AskSecret("Password of " + name)
	if err == nil && !password.IsSet() {
		return "", "", errors.New("no password was given")
	}
	return name, password, err
}

// firstLine returns the first line of a stream without its line ending.
func firstLine(r io.Reader) (secret.String, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	first = strings.TrimSuffix(first, "\r")
	switch {
	case len(text) > maxPassword:
		return "", errors.New("the text on standard input is too long for a password")
	case first == "":
		return "", cmdutil.Usagef("give the password on standard input: paictl login … < FILE")
	}
	return secret.String(first), nil
}
