// Package ssh runs scripts on machines and uploads files to them, over one connection per host.
// In: targets (address, user, credentials) and scripts. Out: the results of the scripts. A gate checks every script before it is sent, and a tracer
// receives every finished operation. Tests use the servers of package sshtest.
package ssh

import (
	"context"
	"io"
	"time"
)

// Script is a POSIX sh program for a host. It is sent to the standard input of the remote shell, never in a command line, so it may contain secrets.
type Script struct {
	// Name describes the script in traces, events and errors, such as "containerd/detect". It must not contain secrets.
	Name string
	Body string
	// Mutates means that the script changes the host. The gate of a dry run rejects such a script.
	Mutates bool
	// User means that the script runs as the login user. Otherwise it runs as root, through sudo if the login user isn't root.
	User bool
	// Timeout limits the duration of a run; zero means Options.ScriptTimeout.
	Timeout time.Duration
	// Stdout receives the script's output instead of Result.Stdout. The output may have any length. If a write fails, the script is stopped.
	Stdout io.Writer
}

// Result is the outcome of a script. Run returns no error for an exit status other than 0.
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
	// SHA256 is the digest of the content in hex, and Size is the content's length in bytes.
	SHA256 string
	Size   int64
	// Open returns a reader of the content. It may be called more than once.
	Open func() (io.ReadCloser, error)
}

// Missing describes a file that a host doesn't have, or has with different content.
type Missing struct {
	File
	// Part is the path of the file's unfinished content, which is in the same folder as Path. Upload resumes from this content.
	Part string
}

// UploadResult counts the files and the bytes of an upload.
type UploadResult struct {
	Sent, Skipped int   // files
	Bytes         int64 // bytes sent
}

// Host is a connected machine. All methods can be called concurrently. By default, at most eight sessions are open at the same time, because
// OpenSSH's default for MaxSessions is ten.
type Host interface {
	// Name returns the machine's name in events and errors.
	Name() string
	// Run runs a script and waits until it exits. An error is about the transport, the gate, sudo or the context; the outcome of the script itself is
	// in Result.
	Run(ctx context.Context, s Script) (Result, error)
	// Hold starts a script and keeps it running until the returned Session ends. The script must print a first line and then wait for the end of its
	// standard input. Hold returns when the first line has arrived.
	Hold(ctx context.Context, s Script) (Session, error)
	// Upload writes files to the host as root. It sends only files whose content differs, and writes each of them to a temporary file in the same
	// folder, which it then verifies and renames. It calls progress, which may be nil, with the number of bytes sent so far, and never concurrently.
	Upload(ctx context.Context, files []File, progress func(sent, total int64)) (UploadResult, error)
	// Missing returns the files that Upload would send now, and creates their folders. It is for callers that transfer files to the host in another
	// way.
	Missing(ctx context.Context, files []File) ([]Missing, error)
	Close() error
}

// Session is a running script that Hold has started on a host.
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
