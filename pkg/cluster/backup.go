package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

//go:embed scripts/backup.sh
var backupScript string

const snapshotTimeout = 2 * time.Hour

// NotesName is the name of the ConfigMap with notes about operations on the whole cluster. BackupNote is the key of the time of the last backup, in
// RFC 3339.
const (
	NotesNamespace = backup.NotesNamespace
	NotesName      = backup.NotesName
	BackupNote     = backup.Note
)

// BackUp adds etcd's database and the keys that can't be created again to a backup. It reads them from one machine of the control plane and doesn't
// change the machine. It works without etcd's quorum if the etcd on the machine responds.
func BackUp(ctx context.Context, s *engine.Spec, o engine.Options, w *backup.Writer) error {
	o.DryRun = true
	r := engine.NewRun(s, o)
	defer r.Close()
	n, err := reachLeader(ctx, r)
	if err != nil {
		return err
	}
	etcd, err := r.ReadEtcd(ctx, n)
	if err != nil {
		return err
	}
	if etcd == nil {
		return hint.Errorf("look at it with: paictl cluster status; on the machine: crictl logs of the container etcd",
			"etcd on %s doesn't answer", n.Hostname)
	}
	if !etcd.Quorum {
		warnOf(r, n, fmt.Sprintf("etcd has no quorum: its database on %s may not have all that other members have", n.Hostname))
	}
	keys, err := r.Read(ctx, n, "backup", "keys", backupScript+"b_keys\n")
	if err != nil {
		return err
	}
	if err := backup.CheckAuthorities(keys.Stdout); err != nil {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	if err := w.Add(backup.PartKeys, int64(len(keys.Stdout)), bytes.NewReader(keys.Stdout)); err != nil {
		return err
	}
	if err := snapshot(ctx, r, n, func(db *backup.Snapshot) error { return w.Add(backup.PartEtcd, db.Size(), db) }); err != nil {
		return fmt.Errorf("etcd's database on %s: %w", n.Hostname, err)
	}
	after, err := r.Read(ctx, n, "backup", "keys", backupScript+"b_keys\n")
	if err != nil {
		return err
	}
	if err := backup.StillTheKeys(keys.Stdout, after.Stdout); err != nil {
		return err
	}
	version, err := servedVersion(ctx, r, n)
	if err != nil {
		warnOf(r, n, fmt.Sprintf("its API server doesn't say its version: %v", err))
	}
	w.Describe(version, machines(s))
	return nil
}

func snapshot(ctx context.Context, r *engine.Run, n *engine.Node, use func(*backup.Snapshot) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	in, out := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		_, err := r.Exec(ctx, n, ssh.Script{
			Name: "backup/etcd", Timeout: snapshotTimeout, Body: engine.PreludeScript + engine.EtcdScript + backupScript + "b_etcd\n", Stdout: out,
		})
		_ = out.CloseWithError(err) // it never fails; if err is nil, the database is complete
		ran <- err
	}()
	err := func() error {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		db, err := backup.NewSnapshot(unpacked)
		if err != nil {
			return err
		}
		return use(db)
	}()
	if err != nil {
		cancel(err)
	}
	_ = in.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // closes it for the output that follows the database
	if failed := <-ran; err != nil && failed != nil && !errors.Is(failed, err) && !errors.Is(failed, io.ErrClosedPipe) {
		return failed // it is the cause
	}
	return err
}

func warnOf(r *engine.Run, n *engine.Node, message string) {
	r.Emit(engine.Event{Kind: engine.EventWarning, Host: n.Hostname, Phase: "backup", Message: message})
}

func servedVersion(ctx context.Context, r *engine.Run, n *engine.Node) (string, error) {
	res, err := r.Read(ctx, n, "backup", "version", r.Spec.SelfAPI(n)+
		`self get --raw /version --request-timeout=10s | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p'`+"\n")
	return strings.TrimSpace(string(res.Stdout)), err
}

func machines(s *engine.Spec) []backup.Machine {
	out := make([]backup.Machine, 0, len(s.Nodes))
	for _, n := range s.Nodes {
		m := backup.Machine{Name: n.Hostname, IP: n.HostIP}
		m.Roles = append(m.Roles, n.Roles...)
		out = append(out, m)
	}
	return out
}
