// Package connection chooses how a command connects to a cluster: with a kubeconfig, or through the platform's server if the user is signed in.
// In: flags, settings, the file with the user's sign-ins. Out: the server and its user, or nil, which means a kubeconfig.
package connection

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/login"
	"github.com/openpai/paictl/pkg/cmd/prompt"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/stream"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/server/inprocess"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/state"
)

// Environment variables that choose a server. The first variable has the same meaning as the setting server.
const (
	EnvServer = "PAICTL_SERVER"
	EnvToken  = "PAICTL_TOKEN"
	EnvCA     = "PAICTL_CA"
)

// Connection is a connection to a server where the user is signed in, or to a server inside paictl.
type Connection struct {
	// Name is the local name of the cluster. It is "" if PAICTL_SERVER is the address of a cluster that isn't stored.
	Name   string
	Server *client.Server
	// User is the name of the user who has signed in. It is "" if the name isn't known here.
	User string
	// Fixed reports whether requests are authenticated with PAICTL_TOKEN.
	Fixed bool
	// Operator reports whether the server runs inside paictl and uses the cluster's kubeconfig.
	Operator bool
	// Cluster is the cluster of the kubeconfig for an operator, and nil otherwise.
	Cluster *kube.Cluster
}

// Address returns the address of the cluster. Commands show it when they ask questions.
func (w *Connection) Address() string {
	if w.Operator {
		return w.Cluster.Server
	}
	return w.Server.Host()
}

// Open returns a connection for a command: to the server where the user is signed in, or to a server inside paictl if the command uses a
// kubeconfig. In the second case, the operator acts on behalf of the user as, which may be "".
func Open(f *cmdutil.Factory, k kube.Options, server, as string) (*Connection, error) {
	w, err := Choose(f, k, server)
	if err != nil || w != nil {
		return w, err
	}
	c, err := kube.Open(k)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	inside, err := inprocess.New(inprocess.Options{Cluster: c, Version: f.Version, Log: f.Log, Configured: configured(c.Client), Author: prompt.Operator(), Status: wholeStatus(c, f.Log),
		Services: func(ctx context.Context) (*state.Report, error) { return services.Report(ctx, c, f.Log) }, Unaudited: func(err error) {
			once.Do(func() { f.IO.Say("warning: the audit has no record of this change: %v", err) })
		}})
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	if as != "" {
		header.Set(inprocess.HeaderFor, url.QueryEscape(as)) // a name may have any character here
	}
	s, err := client.New(client.Options{Version: f.Version, Inside: &client.Inside{Dial: inside.Dial, Header: header,
		Exec: func(ctx context.Context, t *job.Target, cmd stream.Command) error {
			return inside.Exec(ctx, as, t, cmd)
		},
		Forward: func(ctx context.Context, t *job.Target, port int, l net.Listener, problem func(error)) error {
			return inside.Forward(ctx, as, t, port, l, problem)
		}}})
	return &Connection{Server: s, Operator: true, Cluster: c}, err
}

// Store returns the store of the user's sign-ins, a file in the folder of paictl's settings.
func Store(f *cmdutil.Factory) login.Store {
	return login.Store{Path: filepath.Join(f.ConfigHome(), "paictl", "clusters.yaml")}
}

// AddFlag adds --server to a command.
func AddFlag(f *cmdutil.Factory, cmd *cobra.Command, server *string) {
	cmd.Flags().StringVar(server, "server", "", "cluster where you are signed in: its name or address (default: the setting server, or the one of the last paictl login)")
	_ = cmd.RegisterFlagCompletionFunc("server", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return Names(f), cobra.ShellCompDirectiveNoFileComp
	})
}

// Names returns the names of the clusters where the user has signed in, or nil if the file can't be read.
func Names(f *cmdutil.Factory) []string {
	file, err := Store(f).Read()
	if err != nil {
		return nil
	}
	return file.Names()
}

// Choose returns the server to use, or nil if the command uses a kubeconfig. --kubeconfig and --context have precedence, followed by --server,
// PAICTL_SERVER, and the cluster of the last sign-in.
func Choose(f *cmdutil.Factory, k kube.Options, server string) (*Connection, error) {
	if k != (kube.Options{}) {
		if server != "" {
			return nil, cmdutil.Usagef("give --server, or --kubeconfig and --context, not both")
		}
		return nil, nil
	}
	settings, err := f.Settings()
	if err != nil {
		return nil, err
	}
	server = cmp.Or(server, settings.GetString("server"))
	token := f.Getenv(EnvToken)
	file, err := Store(f).Read()
	if err != nil {
		return nil, err
	}
	name, at, err := find(file, server)
	switch {
	case err != nil:
		return nil, err
	case token != "" && at == nil:
		return nil, hint.Errorf("set "+EnvServer+" to https://HOST", "%s is set, and no server is named for it", EnvToken)
	case at == nil:
		return nil, nil
	case token == "" && !at.Refresh.IsSet() && server == "":
		return nil, nil // signed out
	case token == "" && !at.Refresh.IsSet():
		return nil, hint.Errorf("sign in: paictl login "+cmp.Or(name, at.Server), "you are not signed in at %s", cmp.Or(name, at.Server))
	}
	return open(f, name, at, token)
}

// find returns the cluster with the given name or address. If server is empty, it returns the current cluster, or nil if there is no current
// cluster.
func find(file *login.File, server string) (name string, at *login.Cluster, err error) {
	if server == "" {
		if c := file.Clusters[file.Current]; c != nil {
			return file.Current, c, nil
		}
		return "", nil, nil
	}
	if c := file.Clusters[server]; c != nil {
		return server, c, nil
	}
	u, err := client.ParseURL(server)
	if err != nil {
		return "", nil, err
	}
	if name := file.At(u.String()); name != "" {
		return name, file.Clusters[name], nil
	}
	if !strings.Contains(server, "://") && !strings.ContainsAny(server, ".:") {
		return "", nil, hint.Errorf(known(file), "there is no cluster %s where you signed in", server)
	}
	return "", &login.Cluster{Server: u.String()}, nil
}

func known(file *login.File) string {
	if all := file.Names(); len(all) > 0 {
		return "there are: " + strings.Join(all, ", ") + "; sign in at another with: paictl login https://HOST"
	}
	return "sign in: paictl login https://HOST"
}

const remedyCA = "set " + EnvCA + " to a file with the certificate of the server's authority, in PEM"

// open connects to a server. Tokens are renewed with a second client of the same server, which itself uses no tokens.
func open(f *cmdutil.Factory, name string, at *login.Cluster, token string) (*Connection, error) {
	ca := []byte(at.CA)
	if file := f.Getenv(EnvCA); file != "" && len(ca) == 0 {
		var err error
		if ca, err = os.ReadFile(file); err != nil {
			return nil, hint.Wrap(fmt.Errorf("read the authority that %s names: %w", EnvCA, err), remedyCA)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(ca) {
			return nil, hint.Errorf(remedyCA, "the file %s, which %s names, has no certificate", file, EnvCA)
		}
	}
	o := client.Options{URL: at.Server, CA: ca, Version: f.Version, Note: func(text string) { f.IO.Say("%s", text) }}
	w := &Connection{Name: name, Fixed: token != ""}
	if w.Fixed {
		o.Tokens = client.Fixed(token)
	} else {
		renewer, err := client.New(o)
		if err != nil {
			return nil, err
		}
		w.User = at.User
		o.Tokens = &login.Session{Store: Store(f), Name: name, Server: renewer}
	}
	s, err := client.New(o)
	if err != nil {
		return nil, fmt.Errorf("open the cluster %s: %w", cmp.Or(name, at.Server), err)
	}
	w.Server = s
	return w, nil
}
