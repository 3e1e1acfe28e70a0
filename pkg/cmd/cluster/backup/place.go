package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/backup/target"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmd/session"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// places is the part of the help texts that describes where backups can be stored.
const places = `

FOLDER is a folder of this machine, ssh://[USER@]HOST[:PORT]/FOLDER on another, or s3://BUCKET/PREFIX in S3-compatible
storage; a FILE is one of these and the name of a backup. A HOST that is a machine of layout.yaml is reached as paictl reaches
it, others as ssh does. S3 takes its credentials from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the file ~/.aws/credentials.`

// placeFlags are the flags that determine how to connect to the place where backups are stored.
type placeFlags struct {
	Endpoint string
	Region   string
	CA       string
	// Machines holds the flags for connections to machines. Backups can be stored on a machine.
	Machines *session.Flags
}

// add adds the flags to a command. The command already has the flags for a configuration folder and for connections to its machines.
func (fl *placeFlags) add(cmd *cobra.Command, machines *session.Flags) {
	fl.Machines = machines
	cmd.Flags().StringVar(&fl.Endpoint, "s3-endpoint", "", "`URL` of the S3 server (default: $AWS_ENDPOINT_URL, or Amazon's)")
	cmd.Flags().StringVar(&fl.Region, "s3-region", "", "`REGION` of the bucket (default: $AWS_REGION, or the region that the server reports)")
	cmd.Flags().StringVar(&fl.CA, "s3-ca", "", "trust the authorities in this `FILE`, too, for the S3 server's certificate")
	_ = cmd.MarkFlagFilename("s3-ca")
}

// addAlone adds the flags to a command that connects to a machine only if backups are stored there.
func (fl *placeFlags) addAlone(cmd *cobra.Command, f *cmdutil.Factory) {
	machines := &session.Flags{}
	machines.AddConfig(cmd, f)
	cmd.Flags().BoolVar(&machines.AcceptNew, "accept-new-host-keys", false, "accept and remember the key of a host not seen before; a changed key is still refused")
	fl.add(cmd, machines)
}

// again returns the flags that select the same place in another command.
func (fl *placeFlags) again() string {
	var out string
	for _, flag := range []struct{ name, value string }{{"--s3-endpoint", fl.Endpoint}, {"--s3-region", fl.Region}, {"--s3-ca", fl.CA}} {
		if flag.value != "" {
			out += " " + flag.name + " " + hint.Quote(flag.value)
		}
	}
	return out
}

// open connects to the place where backups are stored. The caller must close the target.
func (fl *placeFlags) open(f *cmdutil.Factory, place string) (target.Target, error) {
	return target.Open(place, target.Options{
		S3: target.S3{Endpoint: fl.Endpoint, Region: fl.Region, CA: fl.CA, Getenv: f.Getenv},
		Dial: func(m target.Machine) (*ssh.Client, ssh.Target, error) {
			t, err := fl.target(m)
			if err != nil {
				return nil, t, err
			}
			return fl.client(f), t, nil
		},
	})
}

func (fl *placeFlags) client(f *cmdutil.Factory) *ssh.Client {
	o := ssh.Options{Tracer: ssh.SlogTracer{Log: f.Log}}
	if fl.Machines.AcceptNew {
		o.HostKeys = ssh.HostKeyAcceptNew
	}
	o.Warn = func(text string) { f.IO.Say("warning: %s", text) }
	if f.IO.CanPrompt() {
		p := &prompt.Person{IO: f.IO}
		o.Confirm, o.Prompt = p.ConfirmKey, p.AskSecret
	}
	return ssh.NewClient(o)
}

// target returns how to connect to a machine with SSH. If the configuration contains a machine with this name or address, the settings of this
// machine are used, unless m contains another user or port. Otherwise ssh resolves the name.
func (fl *placeFlags) target(m target.Machine) (ssh.Target, error) {
	t := ssh.Target{Address: m.Host, User: m.User, Port: m.Port}
	_, err := os.Stat(filepath.Join(fl.Machines.Dir, config.LayoutFile))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	c, err := config.Load(fl.Machines.Dir)
	if err != nil {
		return t, err
	}
	for _, of := range c.Layout.MachineList {
		if of.Hostname != m.Host && of.HostIP != m.Host {
			continue
		}
		known := c.Target(of)
		if m.User != "" && m.User != known.User { // the password and key of another user don't work
			known.User, known.Password, known.KeyFile = m.User, "", ""
		}
		if m.Port != 0 {
			known.Port = m.Port
		}
		return known, nil
	}
	return t, nil
}

// openFile opens an archive. It also returns the size of the archive in bytes.
func (fl *placeFlags) openFile(ctx context.Context, f *cmdutil.Factory, file string) (*opened, int64, error) {
	place, name, err := target.Split(file)
	if err != nil {
		return nil, 0, err
	}
	t, err := fl.open(f, place)
	if err != nil {
		return nil, 0, err
	}
	in, size, err := t.Open(ctx, name)
	if err != nil {
		return nil, 0, errors.Join(err, t.Close())
	}
	return &opened{ReadCloser: in, target: t}, size, nil
}

// opened is an open archive. Close also closes the target.
type opened struct {
	io.ReadCloser
	target target.Target
	failed error
}

// Read implements io.Reader. It keeps an error other than io.EOF in failed.
func (o *opened) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		o.failed = err
	}
	return n, err
}

// Close implements io.Closer.
func (o *opened) Close() error { return errors.Join(o.ReadCloser.Close(), o.target.Close()) }
