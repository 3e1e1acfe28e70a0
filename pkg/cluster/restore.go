package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

//go:embed scripts/restore.sh
var restoreScript string

// restoreDir is where what is restored lies on the machine that founds the cluster, until it does.
const restoreDir = "/var/lib/paictl/restore"

// Restore is what a new cluster is made of: parts of a backup.
type Restore struct {
	Keys, Etcd RestoreFile
}

// RestoreFile is a part of a backup. Size is in bytes.
type RestoreFile struct {
	Size   int64
	SHA256 string
	Open   func() (io.ReadCloser, error)
}

func (f RestoreFile) upload(name string) ssh.File {
	return ssh.File{Path: restoreDir + "/" + name, Mode: 0o600, SHA256: f.SHA256, Size: f.Size, Open: f.Open}
}

// refuseRestore reports whether a restore may begin or go on, and any other run without one. A machine that belongs to a cluster is only
// one of a restore that was interrupted at its end.
func (r *run) refuseRestore(w *world) error {
	restoring := slices.ContainsFunc(r.spec.ControlPlane(), func(n *Node) bool { return isRestoring(w.of(n, phaseInit)) })
	if r.opts.Restore == nil {
		if restoring && !r.opts.Recreate && len(w.members()) == 0 {
			return hint.Errorf("run paictl cluster restore again; or take the machines back to what they were: paictl cluster down",
				"a restore was interrupted before there was a cluster; this would make an empty one")
		}
		return nil
	}
	if len(r.opts.Limit)+len(r.opts.Phases) > 0 {
		return hint.Errorf("remove --limit and --phases", "a restore makes a whole cluster")
	}
	var members []string
	for _, n := range r.spec.Nodes {
		if w.member(n) {
			members = append(members, n.Hostname)
		}
	}
	if len(members) == 0 || restoring {
		return nil
	}
	return hint.Errorf("back it up, then take it down: paictl cluster down", "%s of a cluster that runs; a restore would end it",
		sentence(members, "is a machine", "are machines"))
}

// sentence is "a is one" or "a, b are many".
func sentence(names []string, one, many string) string {
	verb := many
	if len(names) == 1 {
		verb = one
	}
	return strings.Join(names, ", ") + " " + verb
}

// uploadRestore brings the parts of the backup to the machine that founds the cluster.
func (r *run) uploadRestore(ctx context.Context, n *Node) error {
	from := r.opts.Restore
	return r.upload(ctx, n, phaseInit, []ssh.File{from.Keys.upload(PartKeys), from.Etcd.upload(PartEtcd)})
}

// restore is shell that comes between clear and "kubeadm init", and what follows that.
func (p *initialise) restore(n *Node) (before, after string, err error) {
	image, err := p.spec.image("etcd")
	if err != nil {
		return "", "", err
	}
	before = fmt.Sprintf("r_keys\nr_etcd %s %s %s\n", shell.Quote(p.spec.imageRef(image)), shell.Quote(n.Hostname), shell.Quote("https://"+host(n.HostIP)+":2380"))
	return before, forget(n), nil
}

// forget is the shell that ends a restore.
func forget(n *Node) string { return fmt.Sprintf("r_forget %s\n", shell.Quote(n.Hostname)) }

// isRestoring reports whether a restore on a machine has not come to its end.
func isRestoring(a answer.Answer) bool { return a.Value("restoring") == "yes" }

// host is an address as it stands in a URL.
func host(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// ignoredWith are ignoredChecks and another one.
func (s *Spec) ignoredWith(check string) string {
	all := append(strings.Split(s.ignoredChecks(), ","), check)
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), ",")
}

// dirCheck is kubeadm's name of the check that a folder is empty.
func dirCheck(dir string) string { return "DirAvailable-" + strings.ReplaceAll(dir, "/", "-") }
