package engine

import (
	"io"
)

// RestoreParts holds the parts of a backup for a new cluster.
type RestoreParts struct {
	Keys, Etcd RestoreFile
	// History is the job history, or nil if the run doesn't restore it. Left is the reason why the history in the backup isn't restored.
	History *RestoreHistory
	Left    string
	// Founded, if set, is called when the cluster exists. The argument left is the reason why the job history in the backup wasn't restored, or "".
	Founded func(left string)
}

// RestoreHistory is the job history and its destination, the job controller's folder on the machine Node. Owner owns the folder. The run copies the
// history before the controller starts. It skips the history if the machine has too little space or another history, or doesn't create the cluster.
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
