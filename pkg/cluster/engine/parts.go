package engine

import (
	"io"
)

// RestoreParts holds the parts of a backup from which a new cluster is made.
type RestoreParts struct {
	Keys, Etcd RestoreFile
	// History is the history of jobs; nil if it isn't put on a machine. Left is the reason for that if the backup has a history.
	History *RestoreHistory
	Left    string
	// Founded is called when the cluster exists. Its argument is the reason why the history of jobs wasn't restored; it is "" if the
	// history was restored, or if the backup doesn't contain one. Founded may be nil.
	Founded func(left string)
}

// RestoreHistory is the history of jobs, and its destination for the job controller: a folder of the machine Node, owned by Owner. It
// is copied there before the controller starts, if that machine initialises the cluster, has enough space and has no other history.
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
