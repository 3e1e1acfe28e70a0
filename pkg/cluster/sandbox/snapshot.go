package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

// Snapshot is a snapshot of a cluster's etcd database.
type Snapshot struct {
	// File is the path of a file that "etcdctl snapshot save" has written. Encryption is the path of the API server's EncryptionConfiguration, or "" if
	// the data isn't encrypted.
	File, Encryption string
}

// restore creates etcd's data from a snapshot, with etcdutl from the bundle.
func (s *Sandbox) restore(ctx context.Context, from *Snapshot) error {
	dir := s.state.Bundle
	if dir == "" {
		dir = bundle.DefaultDir
	}
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	tool, ok := b.Lookup(bundle.KindTool, "etcdutl")
	if !ok {
		return hint.Errorf("complete it: paictl bundle build -o "+hint.Quote(dir), "the bundle in %s has no etcdutl to run here", dir)
	}
	program, err := filepath.Abs(b.File(tool))
	if err != nil {
		return err
	}
	peer := endpoint(s.state.API.Ports.EtcdPeer)
	cmd := exec.CommandContext(ctx, program, "snapshot", "restore", from.File, "--data-dir="+s.apiFile("etcd"), "--name=sandbox",
		"--initial-cluster=sandbox="+peer, "--initial-advertise-peer-urls="+peer)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("etcdutl snapshot restore: %w: %s", err, lines[len(lines)-1])
	}
	s.encryption = from.Encryption
	return nil
}
