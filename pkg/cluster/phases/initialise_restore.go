package phases

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/ssh"
)

// RestoreScript defines the shell functions for a restore on a machine.
//
//go:embed scripts/restore.sh
var RestoreScript string

// uploadRestore copies the parts of the backup to the machine that creates the cluster. It returns the state of the job history on that machine.
func uploadRestore(ctx context.Context, r *engine.Run, n *engine.Node) (history string, err error) {
	from := r.Want.Restore
	keys, err := oneCertificateEach(from.Keys)
	if err != nil {
		return "", err
	}
	files := []ssh.File{Upload(keys, backup.PartKeys), Upload(from.Etcd, backup.PartEtcd)}
	if h := historyOn(from, n); h != nil {
		if history, err = roomForHistory(ctx, r, n, h); err != nil {
			return "", err
		}
		if history == historyNone {
			files = append(files, Upload(h.RestoreFile, backup.PartJobs))
		}
	}
	return history, r.Upload(ctx, n, engine.PhaseInit, files)
}

// restore returns two pieces of shell code. The first runs before "kubeadm init" and after the code of Clear. The second runs after "kubeadm init".
// history is the result of uploadRestore.
func (p *initialise) restore(n *engine.Node, from *engine.RestoreParts, history string) (before, after string, err error) {
	image, err := p.want.Image("etcd")
	if err != nil {
		return "", "", err
	}
	before = fmt.Sprintf("r_keys\nr_etcd %s %s %s\n", shell.Quote(ImageRef(p.want.Spec, image)), shell.Quote(n.Hostname), shell.Quote("https://"+engine.Host(n.HostIP)+":2380"))
	switch h := historyOn(from, n); {
	case h == nil:
	case history == historyNone:
		before += fmt.Sprintf("r_history %s %d\n", shell.Quote(h.Folder), h.Owner)
	default:
		before += "r_told " + history + "\n"
	}
	return before, forget(p.want.Spec, n), nil
}

// founded ends a restore on the machine that has created the cluster. It warns if the job history wasn't restored on that machine.
func founded(r *engine.Run, n *engine.Node, stdout []byte) error {
	a, err := answer.Parse(stdout)
	if err != nil {
		return err
	}
	state, from := a.Value("history"), r.Want.Restore
	if from == nil { // a later "cluster up" finished the restore, and doesn't know the backup
		if state != "" && state != historyPlaced {
			warnOfHistory(r, n, missingHistory((&engine.RestoreHistory{Node: n.Hostname}), n, state))
		}
		return nil
	}
	left := from.Left
	if from.History != nil {
		left = missingHistory(from.History, n, state)
	}
	if left != "" {
		warnOfHistory(r, n, left)
	}
	if from.Founded != nil {
		from.Founded(left)
	}
	return nil
}

// forget returns shell code that ends the restore. The code removes the old cluster's machines from the restored cluster.
func forget(s *engine.Spec, n *engine.Node) string {
	names := make([]string, 0, len(s.Nodes))
	for _, m := range s.Nodes {
		names = append(names, m.Hostname)
	}
	return fmt.Sprintf("r_forget %s %s\n", shell.Quote(n.Hostname), shell.Quote(strings.Join(names, " ")))
}

// IsRestoring reports whether an unfinished restore exists on a machine.
func IsRestoring(a answer.Answer) bool { return a.Value("restoring") != "" }

// ignoredWith returns the checks that kubeadm ignores, including check.
func ignoredWith(s *engine.Spec, check string) string {
	all := append(strings.Split(IgnoredChecks(s), ","), check)
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), ",")
}

// dirCheck returns the name of the kubeadm check that fails if a folder isn't empty.
func dirCheck(dir string) string { return "DirAvailable-" + strings.ReplaceAll(dir, "/", "-") }

// restoreDir is the folder on the machine that contains the parts of the backup during the restore.
const restoreDir = "/var/lib/paictl/restore"

// mostKeys is the maximum size of PartKeys, in bytes.
const mostKeys = 16 << 20

// ReadKeys reads PartKeys from a backup. It returns an error if PartKeys is larger than mostKeys.
func ReadKeys(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostKeys+1))
	if err != nil {
		return nil, fmt.Errorf("the keys in the backup: %w", err)
	}
	if len(text) > mostKeys {
		return nil, fmt.Errorf("the keys in the backup: more than %d bytes", mostKeys)
	}
	return text, nil
}

const historyNone = "none"

const historyPlaced = "placed"

const historyThere = "there"

const historyNoRoom = "room"

// restoreReserve is the number of bytes that must remain free after the job history was copied. The machine needs the space for images and logs.
const restoreReserve = 1 << 30

func historyOn(r *engine.RestoreParts, n *engine.Node) *engine.RestoreHistory {
	if r.History == nil || r.History.Node != n.Hostname {
		return nil
	}
	return r.History
}

// Upload returns the upload of a part of the backup to the file name in restoreDir.
func Upload(f engine.RestoreFile, name string) ssh.File {
	return ssh.File{Path: restoreDir + "/" + name, Mode: 0o600, SHA256: f.SHA256, Size: f.Size, Open: f.Open}
}

// oneCertificateEach returns PartKeys with only the certificate that belongs to each CA's key. paictl selects the certificates before the upload,
// because some machines don't have a program for this selection.
func oneCertificateEach(f engine.RestoreFile) (engine.RestoreFile, error) {
	in, err := f.Open()
	if err != nil {
		return engine.RestoreFile{}, err
	}
	defer in.Close()
	text, err := ReadKeys(in)
	if err != nil {
		return engine.RestoreFile{}, err
	}
	if text, err = backup.OneCertificateEach(text); err != nil {
		return engine.RestoreFile{}, fmt.Errorf("the keys in the backup: %w", err)
	}
	sum := sha256.Sum256(text)
	return engine.RestoreFile{Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}}, nil
}

// roomForHistory determines whether the job history must be copied, and whether the machine has enough space. Without enough space, the cluster is
// restored without the history.
func roomForHistory(ctx context.Context, r *engine.Run, n *engine.Node, h *engine.RestoreHistory) (string, error) {
	a, err := engine.Answer(r.Read(ctx, n, engine.PhaseInit, "room", RestoreScript+fmt.Sprintf("ETCD_DIR=%s\nr_room %s %d %s\n",
		shell.Quote(strings.TrimSuffix(EtcdData(r.Spec), "/")), shell.Quote(h.Folder), h.Size, shell.Quote(h.SHA256))))
	if err != nil {
		return "", err
	}
	state := a.Value("history")
	switch state {
	case historyPlaced, historyThere:
		return state, nil
	case historyNone:
	default:
		return "", fmt.Errorf("%s doesn't say whether it has a history of jobs: %q", n.Hostname, a.Raw)
	}
	short, err := tooFull(r.Want.Restore, a)
	if err != nil {
		return "", fmt.Errorf("the disks of %s: %w", n.Hostname, err)
	}
	if short == "" {
		return historyNone, nil
	}
	r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: engine.PhaseInit, Message: "no room for the history of jobs: " + short,
		Hint: "the restore continues without it"})
	return historyNoRoom, nil
}

// tooFull describes a disk that is too small for the job history and the other parts of the backup. It returns "" if all disks have enough space.
func tooFull(r *engine.RestoreParts, a answer.Answer) (string, error) {
	brought := func(name string, of engine.RestoreFile) int64 {
		size, err := strconv.ParseInt(a.Value("brought", name), 10, 64)
		if err != nil {
			return of.Size // no part of the file is present yet
		}
		return max(0, of.Size-size)
	}
	etcd, history := brought(backup.PartEtcd, r.Etcd), brought(backup.PartJobs, r.History.RestoreFile)
	needs, free, hasHistory := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for where, need := range map[string]int64{"parts": r.Keys.Size + etcd + history, "etcd": r.Etcd.Size, "history": r.History.Size} {
		row, _ := a.Row("disk", where)
		if len(row) != 2 {
			return "", fmt.Errorf("no answer for %s: %q", where, a.Raw)
		}
		kib, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			return "", fmt.Errorf("the room on %s: %w", row[0], err)
		}
		needs[row[0]] += need
		free[row[0]] = kib << 10
		hasHistory[row[0]] = hasHistory[row[0]] || where != "etcd"
	}
	for _, mount := range slices.Sorted(maps.Keys(needs)) {
		if need := needs[mount] + restoreReserve; hasHistory[mount] && free[mount] < need {
			return fmt.Sprintf("%s has %s free, and needs %s for the restore", mount, humanize.IBytes(uint64(max(0, free[mount]))), humanize.IBytes(uint64(need))), nil
		}
	}
	return "", nil
}

func warnOfHistory(r *engine.Run, n *engine.Node, left string) {
	r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: engine.PhaseInit, Message: "the history of jobs isn't in place: " + left,
		Hint: "put it back when the services run: paictl cluster restore FILE --history"})
}

// missingHistory returns the reason why the job history wasn't restored on the machine that created the cluster. It returns "" if it was restored.
func missingHistory(h *engine.RestoreHistory, n *engine.Node, state string) string {
	switch {
	case state == historyPlaced:
		return ""
	case n.Hostname != h.Node:
		return fmt.Sprintf("the job controller's volume will be on %s, and %s founds the cluster", h.Node, n.Hostname)
	case state == historyThere:
		return n.Hostname + " has another one already, which stays"
	case state == historyNoRoom:
		return n.Hostname + " has no room for it"
	}
	return n.Hostname + " doesn't say what has become of it"
}
