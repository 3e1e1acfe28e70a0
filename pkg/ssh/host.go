// Package ssh runs scripts on machines and uploads files to them, over one connection per host.
// In: targets (address, user, ways to authenticate) and scripts. Out: their results.
// A gate checks every script before it is sent, a tracer receives it afterwards; tests use
// sshtest's hosts.
package ssh

import (
	"context"
	"io"
	"time"
)

// Script is a POSIX sh program for one host. It travels on the remote shell's standard
// input, never on a command line, so it may hold secrets.
type Script struct {
	// Name describes the script in traces, events and errors, such as
	// "containerd/detect". It holds no secret.
	Name string
	Body string
	// Mutates means that the script changes the host. A dry run's gate rejects such a script.
	Mutates bool
	// User runs the script as the login user; otherwise it runs as root, through sudo
	// if the login user is not root.
	User bool
	// Timeout limits one run; zero means the host's default (see Options).
	Timeout time.Duration
	// Stdout receives the script's output, of any length, instead of Result.Stdout. If a write fails, the script is stopped.
	Stdout io.Writer
}

// Result is the outcome of a script. A non-zero exit status is not an error of Run.
type Result struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int
	Duration time.Duration

	passed int64 // bytes of Script.Stdout
}

// File is one file to upload.
type File struct {
	// Path is the absolute path on the host.
	Path string
	Mode uint32
	// SHA256 is the hex digest of the content and Size its length in bytes.
	SHA256 string
	Size   int64
	// Open returns the content. It may be called more than once.
	Open func() (io.ReadCloser, error)
}

// Missing is a file that a host doesn't have with the right content.
type Missing struct {
	File
	// Part is the path of its unfinished content, beside Path. Upload resumes from that content.
	Part string
}

// UploadResult counts the files and bytes of an upload.
type UploadResult struct {
	Sent, Skipped int   // files
	Bytes         int64 // bytes sent
}

// Host is a connected machine. All methods are safe for concurrent use; at most eight
// sessions are open at a time (OpenSSH's MaxSessions is ten).
type Host interface {
	// Name is the machine's name in events and errors.
	Name() string
	// Run runs a script and waits until it exits. The error is one of transport, gate, sudo or
	// context; the script's own outcome is in Result.
	Run(ctx context.Context, s Script) (Result, error)
	// Hold starts a script and keeps its session open, for as long as the returned
	// Session lives. The script is expected to print a first line and then to wait for
	// the end of its standard input; Hold returns when that first line has arrived.
	Hold(ctx context.Context, s Script) (Session, error)
	// Upload puts files on the host as root: only those whose content differs, each
	// written beside its target, checked, then renamed. progress may be nil and is
	// called with the bytes sent so far; calls are never concurrent.
	Upload(ctx context.Context, files []File, progress func(sent, total int64)) (UploadResult, error)
	// Missing returns the files that Upload would send now, and prepares their folders. It is for callers that transfer a file to the host by other
	// means.
	Missing(ctx context.Context, files []File) ([]Missing, error)
	Close() error
}

// Session is a script that Hold keeps running on a host.
type Session interface {
	// FirstLine is the first line that the script printed, without the newline.
	FirstLine() string
	// Done is closed when the session has ended for any reason.
	Done() <-chan struct{}
	// Close ends the script's standard input and waits for it to exit.
	Close() error
}

// Dialer reaches hosts. The returned Host has authenticated.
type Dialer interface {
	Dial(ctx context.Context, t Target) (Host, error)
}
