package backup

import (
	"slices"
	"strings"
)

// Names of the parts of a backup; the names of the configuration folder's files begin with FolderConfig.
const (
	PartEtcd = "etcd.db"
	PartKeys = "keys.tar"
	// PartJobs is the history of jobs, a file of SQLite.
	PartJobs     = "jobs.db"
	FolderConfig = "config/"
)

// The cluster's notes of operations on all of its machines are in a ConfigMap. Note is the key of the time of its last backup, in RFC
// 3339.
const (
	NotesNamespace = "kube-system"
	NotesName      = "paictl"
	Note           = "backup"
	// NoteHistory is the key of the time of the last backup with the history of jobs.
	NoteHistory = "backup-history"
	// NoteRestored is the key of the note that says when and where the cluster was restored from a backup.
	NoteRestored = "restored"
)

var keyFiles = strings.Fields(`etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub
	etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key
	etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml`)

// KeyFiles returns the files in PartKeys, as paths from the root of a machine of the control plane: the files that can't be created again. They are
// complete, because these keys sign all other keys and certificates.
func KeyFiles() []string { return slices.Clone(keyFiles) }
