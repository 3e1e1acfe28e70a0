package engine

import (
	"io"
)

// RestoreParts holds the parts of a backup from which a new cluster is made.
type RestoreParts struct {
	Keys, Etcd RestoreFile
	// History is the job history, or nil if it isn't copied to a machine. If the backup has a job history, Left is the reason why it isn't
	// copied.
	History *RestoreHistory
	Left    string
	// Founded is called when the cluster exists. Its argument is the reason why the job history wasn't restored, or "" if the history was
	// restored or the backup doesn't contain one. Founded may be nil.
	Founded func(left string)
}

// RestoreHistory is the job history and its destination: the job controller's folder on the machine Node, owned by Owner. The history is copied
// there before the controller starts, if that machine initialises the cluster, has enough space and has no other history.
type RestoreHistory struct {
	RestoreFile
	Node, Folder string
	Owner        int64
}

// RestoreFile is a part of a backup. Size is in bytes.
type RestoreFile struct {
	Size   int64
	SHA256 string
	Open   func() (io.ReadCloser, error)
}
