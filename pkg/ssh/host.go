// Package ssh runs scripts on machines and uploads files to them, over one connection per host. In: targets (address, user, credentials) and scripts.
// Out: the results of the scripts. A gate checks every script before the transfer, and a tracer receives every finished operation. Tests use the
// servers of package sshtest.
package ssh

import (
	"context"
	"io"
	"time"
)

// Script is a POSIX sh program for a host. A script may contain secrets, because it is sent to the standard input of the remote shell and never
// appears in a command line.
type Script struct {
	// Name describes the script in traces, events and errors, such as "containerd/detect". Name must not contain secrets.
	Name string
	Body string
	// Mutates means that the script changes the host. DryRunGate rejects the script.
	Mutates bool
	// User means that the script runs as the login user. Otherwise the script runs as root, with sudo if necessary.
	User bool
	// Timeout limits the duration of a run. Zero means Options.ScriptTimeout.
	Timeout time.Duration
	// Stdout receives the script's output instead of Result.Stdout, without a size limit. A failed write stops the script.
	Stdout io.Writer
}

// Result is the outcome of a script. Run returns no error if the exit status isn't 0.
type Result struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int
	Duration time.Duration

	passed int64 // bytes of Script.Stdout
}

// File describes a file to upload.
type File struct {
	// Path is the file's absolute path on the host.
	Path string
	Mode uint32
	// SHA256 is the SHA-256 digest of the content in hex. Size is the length of the content in bytes.
	SHA256 string
	Size   int64
	// Open returns a reader of the content. Open may be called more than once.
	Open func() (io.ReadCloser, error)
}

// Missing describes a file that is missing on a host or differs from the host's file.
type Missing struct {
	File
	// Part is the path of the partially uploaded file, in the same folder as Path. Upload resumes the transfer from this file.
	Part string
}

// UploadResult counts the files and the bytes of an upload.
type UploadResult struct {
	Sent, Skipped int   // files
	Bytes         int64 // bytes sent
}

// Host is a connected machine. All methods can be called concurrently. By default, a connection opens at most eight sessions at the same time,
// because OpenSSH's default for MaxSessions is ten.
type Host interface {
	// Name returns the machine's name in events and errors.
	Name() string
	// Run runs a script and waits until the script exits. The error describes a failure of the transport, the gate, sudo or the context. Result contains
	// the exit status of the script.
	Run(ctx context.Context, s Script) (Result, error)
	// Hold starts a script and keeps the script running until the returned Session ends. The script must print a line and then wait for the end of its
	// standard input. Hold returns when the first line has arrived.
	Hold(ctx context.Context, s Script) (Session, error)
	// Upload writes files to the host as root, and skips files with equal content. Upload writes each file to a temporary file in the same folder,
	// verifies the checksum, and renames the temporary file. The arguments of progress are numbers of bytes. progress may be nil and is never called
	// concurrently.
	Upload(ctx context.Context, files []File, progress func(sent, total int64)) (UploadResult, error)
	// Missing returns the files that Upload would send now, and creates their folders. Callers use Missing to transfer files to the host without Upload.
	Missing(ctx context.Context, files []File) ([]Missing, error)
	Close() error
}

// Session is a running script that Hold started on a host.
type Session interface {
	// FirstLine returns the first line that the script printed, without the newline.
	FirstLine() string
	// Done returns a channel that is closed when the session has ended for any reason.
	Done() <-chan struct{}
	// Close closes the script's standard input and waits for the script to exit.
	Close() error
}

// Dialer connects to hosts. The returned Host is already authenticated.
type Dialer interface {
	Dial(ctx context.Context, t Target) (Host, error)
}
