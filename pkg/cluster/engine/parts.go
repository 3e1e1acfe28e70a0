package engine

import (
	"io"
)

// RestoreParts holds the parts of a backup from which a new cluster is created.
type RestoreParts struct {
	Keys, Etcd RestoreFile
	// History is the job history, or nil if the run doesn't copy it to a machine. If the backup contains a job history that isn't copied, Left is the
	// reason.
	History *RestoreHistory
	Left    string
	// Founded is called when the cluster exists. left is the reason why the job history wasn't restored, or "" if the history was restored or the
	// backup doesn't contain a history. Founded may be nil.
	Founded func(left string)
}

// RestoreHistory is the job history and its destination: the job controller's folder on the machine Node, owned by Owner. The run copies the history
// before the controller starts, if that machine creates the cluster, has enough space, and has no other history.
type RestoreHistory struct {
	RestoreFile
	Node, Folder string
	Owner        int64
}

// RestoreFile is one part of a backup. Size is in bytes.
type RestoreFile struct {
	Size   int64
	SHA256 string
	Open   func() (io.ReadCloser, error)
}
