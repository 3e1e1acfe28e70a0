package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

//go:embed scripts/restore.sh
var restoreScript string

// restoreDir is the folder of the parts to restore on the machine that founds the cluster, until it has done so.
const restoreDir = "/var/lib/paictl/restore"

// mostKeys limits how many bytes of PartKeys are read.
const mostKeys = 16 << 20

// keyFiles are the only files that a backup of keys may have: root unpacks the archive.
var keyFiles = backup.KeyFiles()

// CheckKeys returns an error if files are missing in a backup of keys, don't belong there, or don't match each other.
func CheckKeys(r io.Reader) error {
	text, err := readKeys(r)
	if err != nil {
		return err
	}
	in, seen := tar.NewReader(bytes.NewReader(text)), map[string]bool{}
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
	if err := backup.CheckAuthorities(text); err != nil {
		return fmt.Errorf("the keys in the backup: %w", err)
	}
	return nil
}

// readKeys reads PartKeys, and refuses one of an implausible size.
func readKeys(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostKeys+1))
	if err != nil {
		return nil, fmt.Errorf("the keys in the backup: %w", err)
	}
	if len(text) > mostKeys {
		return nil, fmt.Errorf("the keys in the backup: more than %d bytes", mostKeys)
	}
	return text, nil
}

// RestoreParts holds the parts of a backup from which a new cluster is made.
type RestoreParts struct {
	Keys, Etcd RestoreFile
	// History is the history of jobs; nil if it isn't put on a machine. Left is the reason for that if the backup has a history.
	History *RestoreHistory
	Left    string
	// Founded is called when the cluster exists. Its argument is the reason why the history of jobs isn't in place; it is "" if the history is in
	// place, or if the backup doesn't contain one. Founded may be nil.
	Founded func(left string)
}

// RestoreHistory is the history of jobs, and its destination for the job controller: a folder of the machine Node, owned by Owner. It is put there if
// that machine founds the cluster, has room for it and has no other history, and before the controller may begin.
type RestoreHistory struct {
	RestoreFile
	Node, Folder string
	Owner        int64
}

// States of the history of jobs that a machine reports.
const (
	historyNone   = "none"
	historyPlaced = "placed"
	historyThere  = "there"
	historyNoRoom = "room"
)

// restoreReserve is how many bytes a disk must have left beside a history of jobs: the machine needs room for images and logs as well.
const restoreReserve = 1 << 30

// Restore makes a new cluster from a backup, through the phases of Up.
func Restore(ctx context.Context, s *Spec, o Options, from *RestoreParts) ([]Change, error) {
	r := newRun(s, o)
	defer r.close()
	r.want = &desired{Spec: s, restore: from}
	return r.converge(ctx, "cluster restore", "", func(_ context.Context, w *world, _ []*Node) (*world, []Change, error) {
		return w, nil, cmp.Or(r.refuseRestore(w), w.refuseRecovery())
	})
}

func (r *RestoreParts) historyOn(n *Node) *RestoreHistory {
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

// oneCertificateEach returns PartKeys with only the certificate that belongs to each authority's key. It is made here, since not every machine
// has a program that could find it.
func (f RestoreFile) oneCertificateEach() (RestoreFile, error) {
	in, err := f.Open()
	if err != nil {
		return RestoreFile{}, err
	}
	defer in.Close()
	text, err := readKeys(in)
	if err != nil {
		return RestoreFile{}, err
	}
	if text, err = backup.OneCertificateEach(text); err != nil {
		return RestoreFile{}, fmt.Errorf("the keys in the backup: %w", err)
	}
	sum := sha256.Sum256(text)
	return RestoreFile{Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}}, nil
}

// refuseRestore refuses a restore that may neither begin nor continue, and any other run if a restore was interrupted too early. Members
// of a cluster may only be those of the same restore, interrupted near its end.
func (r *run) refuseRestore(w *world) error {
	masters, members := r.spec.ControlPlane(), w.members()
	unfinished := slices.DeleteFunc(slices.Clone(masters), func(n *Node) bool { return !isRestoring(w.of(n, phaseInit)) })
	of := slices.DeleteFunc(slices.Clone(members), func(n *Node) bool { return !isRestoring(w.of(n, phaseInit)) })
	whole := len(r.opts.Limit)+len(r.only) == 0
	switch {
	case r.want.restore == nil && len(unfinished) == 0:
		return nil
	case r.want.restore == nil && len(members) == 0:
		return hint.Errorf("run paictl cluster restore again; or undo the changes on the machines: paictl cluster down",
			"a restore was interrupted before there was a cluster; this would make an empty one")
	case !whole && (r.want.restore != nil || len(of) > 0):
		return hint.Errorf("remove --limit and --phases", "a restore makes a whole cluster, and hasn't come to its end")
	case r.want.restore == nil:
		return nil
	}
	for _, n := range of {
		if have := w.of(n, phaseInit).Value("restoring"); have != r.want.restore.Etcd.SHA256 {
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

// sentence returns "a is one" or "a, b are many".
func sentence(names []string, one, many string) string {
	verb := many
	if len(names) == 1 {
		verb = one
	}
	return strings.Join(names, ", ") + " " + verb
}

// uploadRestore copies the parts of the backup to the machine that founds the cluster. It returns the state of the history of jobs on that machine.
func (r *run) uploadRestore(ctx context.Context, n *Node) (history string, err error) {
	from := r.want.restore
	keys, err := from.Keys.oneCertificateEach()
	if err != nil {
		return "", err
	}
	files := []ssh.File{keys.upload(PartKeys), from.Etcd.upload(PartEtcd)}
	if h := from.historyOn(n); h != nil {
		if history, err = r.roomForHistory(ctx, n, h); err != nil {
			return "", err
		}
		if history == historyNone {
			files = append(files, h.upload(backup.PartJobs))
		}
	}
	return history, r.upload(ctx, n, phaseInit, files)
}

// roomForHistory checks whether a machine needs the history of jobs and has room for it. If it has no room, the cluster can still be restored.
func (r *run) roomForHistory(ctx context.Context, n *Node, h *RestoreHistory) (string, error) {
	res, err := r.read(ctx, n, phaseInit, "room", restoreScript+fmt.Sprintf("ETCD_DIR=%s\nr_room %s %d %s\n",
		shell.Quote(strings.TrimSuffix(r.spec.etcdData(), "/")), shell.Quote(h.Folder), h.Size, shell.Quote(h.SHA256)))
	if err != nil {
		return "", err
	}
	a, err := answer.Parse(res.Stdout)
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
	short, err := r.want.restore.tooFull(a)
	if err != nil {
		return "", fmt.Errorf("the disks of %s: %w", n.Hostname, err)
	}
	if short == "" {
		return historyNone, nil
	}
	r.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseInit, Message: "no room for the history of jobs: " + short,
		Hint: "the restore continues without it"})
	return historyNoRoom, nil
}

// tooFull describes a disk without enough room for the parts of a backup that are copied there, including the history of jobs; "" if all have enough.
func (r *RestoreParts) tooFull(a answer.Answer) (string, error) {
	brought := func(name string, of RestoreFile) int64 {
		size, err := strconv.ParseInt(a.Value("brought", name), 10, 64)
		if err != nil {
			return of.Size // no part of the file is present yet
		}
		return max(0, of.Size-size)
	}
	etcd, history := brought(PartEtcd, r.Etcd), brought(backup.PartJobs, r.History.RestoreFile)
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

// restore returns the shell code between clear and "kubeadm init", and the code after "kubeadm init". history is the result of uploadRestore.
func (p *initialise) restore(n *Node, from *RestoreParts, history string) (before, after string, err error) {
	image, err := p.want.image("etcd")
	if err != nil {
		return "", "", err
	}
	before = fmt.Sprintf("r_keys\nr_etcd %s %s %s\n", shell.Quote(p.want.imageRef(image)), shell.Quote(n.Hostname), shell.Quote("https://"+host(n.HostIP)+":2380"))
	switch h := from.historyOn(n); {
	case h == nil:
	case history == historyNone:
		before += fmt.Sprintf("r_history %s %d\n", shell.Quote(h.Folder), h.Owner)
	default:
		before += "r_told " + history + "\n"
	}
	return before, p.want.forget(n), nil
}

// founded ends a restore on the machine that founded the cluster, and reports that machine's state of the history of jobs.
func (r *run) founded(n *Node, stdout []byte) error {
	a, err := answer.Parse(stdout)
	if err != nil {
		return err
	}
	state, from := a.Value("history"), r.want.restore
	if from == nil { // "cluster up" has finished it, and doesn't know the backup
		if state != "" && state != historyPlaced {
			r.warnOfHistory(n, (&RestoreHistory{Node: n.Hostname}).left(n, state))
		}
		return nil
	}
	left := from.Left
	if from.History != nil {
		left = from.History.left(n, state)
	}
	if left != "" {
		r.warnOfHistory(n, left)
	}
	if from.Founded != nil {
		from.Founded(left)
	}
	return nil
}

func (r *run) warnOfHistory(n *Node, left string) {
	r.emit(Event{Kind: EventWarning, Host: n.Hostname, Phase: phaseInit, Message: "the history of jobs isn't in place: " + left,
		Hint: "put it back when the services run: paictl cluster restore FILE --history"})
}

// left returns the reason why the history of jobs isn't in place, according to the machine that founded a cluster; "" if it is in place.
func (h *RestoreHistory) left(n *Node, state string) string {
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

// forget returns the shell code that ends a restore.
func (s *Spec) forget(n *Node) string {
	names := make([]string, 0, len(s.Nodes))
	for _, m := range s.Nodes {
		names = append(names, m.Hostname)
	}
	return fmt.Sprintf("r_forget %s %s\n", shell.Quote(n.Hostname), shell.Quote(strings.Join(names, " ")))
}

// isRestoring reports whether a restore on a machine is unfinished.
func isRestoring(a answer.Answer) bool { return a.Value("restoring") != "" }

// host returns an address in the form for a URL.
func host(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// ignoredWith returns ignoredChecks and a further one.
func (s *Spec) ignoredWith(check string) string {
	all := append(strings.Split(s.ignoredChecks(), ","), check)
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), ",")
}

// dirCheck is kubeadm's name of the check that a folder is empty.
func dirCheck(dir string) string { return "DirAvailable-" + strings.ReplaceAll(dir, "/", "-") }
