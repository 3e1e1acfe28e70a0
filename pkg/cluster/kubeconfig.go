package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// Kubeconfig fetches the administrator's kubeconfig, which contains a private key, from a machine of the control plane. It prefers a healthy
// machine. In the result, NAME is the name of the cluster and the context, and NAME-admin is the name of the user. The result is intended for
// people. The result contains the API's virtual address if the API responds at that address.
func Kubeconfig(ctx context.Context, s *engine.Spec, o engine.Options) (*api.Config, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	return kubeconfig(ctx, r, func(n *engine.Node, server string) (string, error) {
		vip := s.Config.Kubernetes.Kubernetes.APIVIP
		if vip == "" {
			return reachedBy(r.Want, n, server), nil
		}
		answers, err := phases.VIPAnswers(ctx, r)
		if err != nil || answers {
			return "https://" + s.AtPort(vip), err
		}
		r.Emit(engine.Event{Kind: engine.EventWarning, Message: fmt.Sprintf("the API doesn't answer at its virtual address %s: the kubeconfig names %s, %s, and stops working with that master", vip, n.Hostname, n.HostIP),
			Hint: "see paictl cluster status; after cluster up has set the address, run this command again"})
		return reachedBy(r.Want, n, server), nil
	})
}

// MasterKubeconfig returns a kubeconfig for paictl itself. It contains the address of a master, if possible of a healthy master. It therefore works
// even if the API's virtual address doesn't respond.
func MasterKubeconfig(ctx context.Context, s *engine.Spec, o engine.Options) (*api.Config, error) {
	r := engine.NewRun(s, o)
	defer r.Close()
	return kubeconfig(ctx, r, func(n *engine.Node, server string) (string, error) { return reachedBy(r.Want, n, server), nil })
}

// kubeconfig fetches the kubeconfig of a master. The function address returns the API's address for the result. The arguments of this function are
// that master and the address in the master's file.
func kubeconfig(ctx context.Context, r *engine.Run, address func(n *engine.Node, server string) (string, error)) (*api.Config, error) {
	n, err := reachLeader(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := r.Exec(ctx, n, ssh.Script{Name: "kubeconfig", Timeout: r.Opts.StepTimeout, Body: engine.PreludeScript + `
[ -f "$KUBECONFIG" ] || exit 0
base64 <"$KUBECONFIG" | tr -d '\n'
`})
	if err != nil {
		return nil, err
	}
	if len(res.Stdout) == 0 {
		return nil, noClusterYet(n)
	}
	raw, err := base64.StdEncoding.DecodeString(string(res.Stdout))
	if err != nil {
		return nil, fmt.Errorf("fetch the kubeconfig from %s: %w", n.Hostname, err)
	}
	server, err := address(n, serverIn(raw))
	if err != nil {
		return nil, err
	}
	return renameKubeconfig(raw, r.Spec.Config.Kubernetes.Kubernetes.ClusterName, server)
}

func noClusterYet(n *engine.Node) error {
	return hint.Errorf("run first: paictl cluster up", "there is no cluster on %s yet: it has no /etc/kubernetes/admin.conf", n.Hostname)
}

// reachLeader dials all machines of the control plane. It returns a member of the cluster, if possible a healthy member.
func reachLeader(ctx context.Context, r *engine.Run) (*engine.Node, error) {
	masters := r.Spec.ControlPlane()
	errs := r.Each(ctx, masters, r.Dial)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, n := range masters {
		if errs[n] != nil && len(errs) == len(masters) {
			return nil, errs[n]
		}
	}
	n, err := r.FindLeader(ctx, nil)
	if err != nil || n != nil {
		return n, err
	}
	for _, m := range masters {
		if errs[m] != nil {
			return nil, fmt.Errorf("no machine of the control plane that answers is a member of a cluster, and %w", errs[m])
		}
	}
	return nil, noClusterYet(masters[0])
}

// serverIn returns the API's address in the kubeconfig of a master, or "".
func serverIn(raw []byte) string {
	c, err := clientcmd.Load(raw)
	if err != nil {
		return ""
	}
	for _, cl := range c.Clusters {
		return cl.Server
	}
	return ""
}

// reachedBy returns the API's address for clients outside the cluster. This is usually the configured address. If the configured address belongs to
// a master and the members' kubeconfigs contain the address of another master, it returns that other address. If each machine uses its local
// address, it returns the address of n, a master that responds.
func reachedBy(d *engine.Desired, n *engine.Node, server string) string {
	if d.Local() {
		return "https://" + d.OwnEndpoint(n)
	}
	configured, _, _ := net.SplitHostPort(d.ConfiguredEndpoint())
	if u, err := url.Parse(server); err == nil && d.Master(configured) != nil && d.Master(u.Hostname()) != nil {
		return server
	}
	return "https://" + d.ConfiguredEndpoint()
}

// renameKubeconfig returns a kubeconfig with only the current context of raw. It renames the context, the cluster and the user.
func renameKubeconfig(raw []byte, name, server string) (*api.Config, error) {
	c, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	ctx := c.Contexts[c.CurrentContext]
	if ctx == nil || c.Clusters[ctx.Cluster] == nil || c.AuthInfos[ctx.AuthInfo] == nil {
		return nil, errors.New("read the cluster's kubeconfig: its current context is not complete")
	}
	out := api.NewConfig()
	out.Clusters[name] = c.Clusters[ctx.Cluster]
	out.Clusters[name].Server = server
	out.AuthInfos[name+"-admin"] = c.AuthInfos[ctx.AuthInfo]
	out.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name + "-admin", Namespace: ctx.Namespace}
	out.CurrentContext = name
	return out, nil
}

// MergeResult describes the change to a kubeconfig file.
type MergeResult struct {
	File    string `json:"file"`
	Context string `json:"context"`
	// Created means that the file is new. Replaced means that the file already contained a cluster with this name.
	Created  bool `json:"created"`
	Replaced bool `json:"replaced"`
	// Current is the file's current context after the change, or "" if the file has no current context.
	Current string `json:"current"`
}

// MergeKubeconfig adds the entries of add to a kubeconfig file. It replaces a cluster, user or context with the same name completely, so that no
// old CA or key remains. It keeps other entries. It changes the current context only if use is set. It replaces the file atomically, with mode 0600.
// If the file is a symbolic link, it replaces the target of the link.
func MergeKubeconfig(file string, add *api.Config, use bool) (MergeResult, error) {
	res := MergeResult{File: file, Context: add.CurrentContext}
	target, old, err := readKubeconfig(file)
	if err != nil {
		return res, err
	}
	if old == nil {
		res.Created, old = true, api.NewConfig()
	}
	for name, c := range add.Clusters {
		_, had := old.Clusters[name]
		res.Replaced = res.Replaced || had
		old.Clusters[name] = c
	}
	for name, u := range add.AuthInfos {
		old.AuthInfos[name] = u
	}
	for name, c := range add.Contexts {
		// Keep the namespace that the operator has chosen.
		if had := old.Contexts[name]; had != nil && c.Namespace == "" && had.Cluster == c.Cluster {
			c.Namespace = had.Namespace
		}
		old.Contexts[name] = c
	}
	if use {
		old.CurrentContext = add.CurrentContext
	}
	res.Current = old.CurrentContext
	b, err := clientcmd.Write(*old)
	if err != nil {
		return res, fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return res, fmt.Errorf("write %s: %w", file, err)
	}
	if err := writePrivate(target, b); err != nil {
		return res, fmt.Errorf("write %s: %w", file, err)
	}
	return res, nil
}

// writePrivate atomically replaces a file. Only the owner can read the new file.
func writePrivate(file string, b []byte) error {
	f, err := renameio.NewPendingFile(file, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // after a rename there is nothing to clean up
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// readKubeconfig resolves symbolic links. It returns the real path and the content, which is nil if the file is missing.
func readKubeconfig(file string) (string, *api.Config, error) {
	target, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", file, err)
	}
	b, err := os.ReadFile(target)
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", file, err)
	}
	c, err := clientcmd.Load(b)
	if err != nil {
		return "", nil, hint.Errorf("repair the file, or write another one with --file", "%s is not a kubeconfig: %w", file, err)
	}
	return target, c, nil
}
