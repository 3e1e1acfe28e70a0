package backup

import (
	"slices"
	"strings"
)

// The names of a backup's parts. The names of files from the configuration folder begin with FolderConfig.
const (
	PartEtcd = "etcd.db"
	PartKeys = "keys.tar"
	// PartJobs is the history of jobs, an SQLite database.
	PartJobs     = "jobs.db"
	FolderConfig = "config/"
)

// A ConfigMap holds the cluster's notes about operations on all of its machines. Note is the key whose value is the time of the last backup, in RFC
// 3339.
const (
	NotesNamespace = "kube-system"
	NotesName      = "paictl"
	Note           = "backup"
	// NoteHistory is the key whose value is the time of the last backup with the history of jobs.
	NoteHistory = "backup-history"
	// NoteRestored is the key whose value says when and from where the cluster was restored.
	NoteRestored = "restored"
)

var keyFiles = strings.Fields(`etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub
	etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key
	etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml`)

// KeyFiles returns the paths of the files in PartKeys, relative to the root of a control plane machine. These files can't be created again; their
// keys sign all other keys and certificates, which therefore can.
func KeyFiles() []string { return slices.Clone(keyFiles) }
