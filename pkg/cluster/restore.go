package cluster

import (
	"archive/tar"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/backup"
	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

//go:embed scripts/restore.sh
var restoreScript string

// restoreDir is where what is restored lies on the machine that founds the cluster, until it does.
const restoreDir = "/var/lib/paictl/restore"

// keyFiles are all that a backup of keys may have: the archive is unpacked by root.
var keyFiles = backup.KeyFiles()

// CheckKeys reports what a backup of keys lacks, and what doesn't belong there.
func CheckKeys(r io.Reader) error {
	in, seen := tar.NewReader(r), map[string]bool{}
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return fmt.Errorf("the keys in the backup: %w", err)
		case h.Typeflag != tar.TypeReg || !slices.Contains(keyFiles, h.Name) || seen[h.Name]:
			return fmt.Errorf("the keys in the backup: %q doesn't belong there", h.Name)
		}
		seen[h.Name] = true
	}
	for _, name := range keyFiles {
		if !seen[name] {
			return fmt.Errorf("the keys in the backup: %s is missing, without which its objects can't be used", name)
		}
	}
	return nil
}

// Restore is what a new cluster is made of: parts of a backup.
type Restore struct {
	Keys, Etcd RestoreFile
	// History is the history of jobs; nil: it isn't put on a machine.
	History *RestoreHistory
}

// RestoreHistory is the history of jobs, and where the job controller will look for it: a folder of the machine Node, which is Owner's. It comes there
// if that machine founds the cluster, and before the controller may begin.
type RestoreHistory struct {
	RestoreFile
	Node, Folder string
	Owner        int64
}

func (r *Restore) historyOn(n *Node) *RestoreHistory {
	if r.History == nil || r.History.Node != n.Hostname {
		return nil
	}
	return r.History
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

// refuseRestore refuses a restore that may neither begin nor go on, and any other run where one was interrupted too early. Machines that
// belong to a cluster are only those of the same restore, which was interrupted at its end.
func (r *run) refuseRestore(w *world) error {
	masters, members := r.spec.ControlPlane(), w.members()
	unfinished := slices.DeleteFunc(slices.Clone(masters), func(n *Node) bool { return !isRestoring(w.of(n, phaseInit)) })
	of := slices.DeleteFunc(slices.Clone(members), func(n *Node) bool { return !isRestoring(w.of(n, phaseInit)) })
	whole := len(r.opts.Limit)+len(r.opts.Phases) == 0
	switch {
	case r.opts.Recreate || r.opts.Restore == nil && len(unfinished) == 0:
		return nil
	case r.opts.Restore == nil && len(members) == 0:
		return hint.Errorf("run paictl cluster restore again; or take the machines back to what they were: paictl cluster down",
			"a restore was interrupted before there was a cluster; this would make an empty one")
	case !whole && (r.opts.Restore != nil || len(of) > 0):
		return hint.Errorf("remove --limit and --phases", "a restore makes a whole cluster, and hasn't come to its end")
	case r.opts.Restore == nil:
		return nil
	}
	for _, n := range of {
		if have := w.of(n, phaseInit).Value("restoring"); have != r.opts.Restore.Etcd.SHA256 {
			return hint.Errorf("finish it with the same backup, or with paictl cluster up; to begin again: paictl cluster down",
				"%s belongs to a cluster that was restored from another backup", n.Hostname)
		}
	}
	var names []string
	for _, n := range r.spec.Nodes {
		if w.member(n) {
			names = append(names, n.Hostname)
		}
	}
	if len(names) == 0 || len(of) > 0 {
		return nil
	}
	return hint.Errorf("back it up, then take it down: paictl cluster down", "%s of a cluster that runs; a restore would end it",
		sentence(names, "is a machine", "are machines"))
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
	files := []ssh.File{from.Keys.upload(PartKeys), from.Etcd.upload(PartEtcd)}
	if h := from.historyOn(n); h != nil {
		files = append(files, h.upload(backup.PartJobs))
	}
	return r.upload(ctx, n, phaseInit, files)
}

// restore is shell that comes between clear and "kubeadm init", and what follows that.
func (p *initialise) restore(n *Node, from *Restore) (before, after string, err error) {
	image, err := p.spec.image("etcd")
	if err != nil {
		return "", "", err
	}
	before = fmt.Sprintf("r_keys\nr_etcd %s %s %s\n", shell.Quote(p.spec.imageRef(image)), shell.Quote(n.Hostname), shell.Quote("https://"+host(n.HostIP)+":2380"))
	if h := from.historyOn(n); h != nil {
		before += fmt.Sprintf("r_history %s %d\n", shell.Quote(h.Folder), h.Owner)
	}
	return before, p.spec.forget(n), nil
}

// forget is the shell that ends a restore.
func (s *Spec) forget(n *Node) string {
	names := make([]string, 0, len(s.Nodes))
	for _, m := range s.Nodes {
		names = append(names, m.Hostname)
	}
	return fmt.Sprintf("r_forget %s %s\n", shell.Quote(n.Hostname), shell.Quote(strings.Join(names, " ")))
}

// isRestoring reports whether a restore on a machine has not come to its end.
func isRestoring(a answer.Answer) bool { return a.Value("restoring") != "" }

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
