package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/hint"
)

// Names of the parts of a backup; those of the configuration folder's files begin with FolderConfig.
const (
	PartEtcd = "etcd.db"
	PartKeys = "keys.tar"
	// PartJobs is the history of jobs, a file of SQLite.
	PartJobs     = "jobs.db"
	FolderConfig = "config/"
)

// The cluster's notes of what was done for all of its machines are a ConfigMap. Note is the key of the time of its last backup, RFC 3339.
const (
	NotesNamespace = "kube-system"
	NotesName      = "paictl"
	Note           = "backup"
	// NoteRestored is the key of when and where the cluster was made of a backup.
	NoteRestored = "restored"
)

var keyFiles = strings.Fields(`etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub
	etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key
	etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml`)

// KeyFiles are what PartKeys has, all of them and nothing else, as paths from the root of a machine of the control plane: what can't be
// made again. Other keys and certificates are signed by these.
func KeyFiles() []string { return slices.Clone(keyFiles) }

// StillTheKeys refuses a backup whose keys changed between two readings, as PartKeys has them, of before and after etcd's database was read: Secrets in
// that may be encrypted by a key that the backup doesn't have.
func StillTheKeys(before, after []byte) error {
	was, err := keysIn(before)
	if err != nil {
		return err
	}
	is, err := keysIn(after)
	if err != nil {
		return err
	}
	if maps.Equal(was, is) {
		return nil
	}
	return hint.Errorf("make it again when the rotation of secrets or certificates has come to its end", "the cluster's keys changed while it was saved: the backup might be unreadable")
}

func keysIn(archive []byte) (map[string]string, error) {
	out, in := map[string]string{}, tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
		out[h.Name] = string(text)
	}
}
