package backup

import (
	"slices"
	"strings"
)

// The names of a backup's parts. Files from the configuration folder have the prefix FolderConfig.
const (
	PartEtcd = "etcd.db"
	PartKeys = "keys.tar"
	// PartJobs is the job history, an SQLite database.
	PartJobs     = "jobs.db"
	FolderConfig = "config/"
)

// The ConfigMap with the cluster's notes. Note is the key of the time of the last backup, in RFC 3339.
const (
	NotesNamespace = "kube-system"
	NotesName      = "paictl"
	Note           = "backup"
	// NoteHistory is the key of the time of the last backup with the job history.
	NoteHistory = "backup-history"
	// NoteRestored is the key of the time and the source of a restore.
	NoteRestored = "restored"
)

var keyFiles = strings.Fields(`etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub
	etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key
	etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml`)

// KeyFiles returns the paths of the files in PartKeys, relative to the root of a control plane machine. These files can't be created again. Their
// keys can sign new versions of all other certificates.
func KeyFiles() []string { return slices.Clone(keyFiles) }
