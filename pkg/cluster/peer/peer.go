// Package peer copies files between machines while paictl runs. A machine that has received a file serves it to other machines.
// In: instructions that a run sends to its machines over SSH. Out: files at their paths, each with the right SHA-256.
//
// Senders aren't trusted. A machine compares each fetched file with a checksum that it has received over SSH.
package peer

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Serving is the JSON input of a machine that serves files.
type Serving struct {
	// Address is the HOST:PORT at which the machine serves. If the port is in use, the machine serves at another port of HOST.
	Address string `json:"address"`
	// Token is a secret of the run. The server rejects requests without the token.
	Token string `json:"token"`
	// Folder contains files whose names are their SHA-256 in hex. Files lists the names that other machines may request.
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
	// Seconds is the maximum duration of the service.
	Seconds int `json:"seconds"`
}

// Ready is the JSON output of a machine that begins to serve files, on a single line.
type Ready struct {
	Address string `json:"address"` // HOST:PORT
	// Certificate is the server's certificate in DER. The server creates it for this run, and never stores the key in a file.
	Certificate []byte `json:"certificate"`
}

// Fetching is the JSON input of a machine that fetches one file.
type Fetching struct {
	From  Ready  `json:"from"`
	Token string `json:"token"`

	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
	Mode   uint32 `json:"mode"`
	// Path is the final path of the file, after its content is verified. Until then, Part holds the content, which a later attempt can reuse.
	Path string `json:"path"`
	Part string `json:"part"`
	// Folder is the folder in which this machine serves files, or "". The fetched file is linked into this folder.
	Folder string `json:"folder,omitempty"`
	// Patience holds the timeouts of the transfer. Zero values mean the defaults.
	Patience Patience `json:"patience"`
}

// Patience holds the timeouts of a transfer between machines.
type Patience struct {
	// Dial limits the time until the other machine responds. Stall limits a pause without data.
	Dial  time.Duration `json:"dial,omitempty"`
	Stall time.Duration `json:"stall,omitempty"`
	// Rate is the minimum average rate in bytes per second. It doesn't apply to the first part of a transfer, with the duration Grace.
	Rate  int64         `json:"rate,omitempty"`
	Grace time.Duration `json:"grace,omitempty"`
}

// TooSlow reports whether a transfer that has received got bytes is below the minimum rate.
func (p Patience) TooSlow(got int64, after time.Duration) bool {
	return after > p.Grace && float64(got) < float64(p.Rate)*(after-p.Grace).Seconds()
}

// WithDefaults returns p with default values for fields that aren't positive.
func (p Patience) WithDefaults() Patience {
	if p.Dial <= 0 {
		p.Dial = 5 * time.Second
	}
	if p.Stall <= 0 {
		p.Stall = 10 * time.Second
	}
	if p.Rate <= 0 {
		p.Rate = 256 << 10
	}
	if p.Grace <= 0 {
		p.Grace = 30 * time.Second
	}
	return p
}

// Limit returns the maximum duration of a transfer of the file.
func (f Fetching) Limit() time.Duration {
	p := f.Patience.WithDefaults()
	return 2*p.Dial + p.Grace + p.Stall + time.Duration(f.Size/p.Rate)*time.Second
}

// Failure is the kind of a failed transfer.
type Failure string

// The kinds of failures. Disk is a fault of the fetching machine. All other kinds are faults of the other machine or the network.
const (
	Unreachable Failure = "unreachable" // no connection, or a connection to a different machine
	Refused     Failure = "refused"     // the other machine doesn't know the token or the file, or is overloaded
	Slow        Failure = "slow"
	Broken      Failure = "broken" // the connection ended early
	Wrong       Failure = "wrong"  // the content has a different checksum, and the other machine sent all of it
	Mixed       Failure = "mixed"  // the checksum is different, but a part of the content is from an earlier attempt; the content is removed
	Disk        Failure = "disk"   // this machine can't write the file
)

// Message is a line of JSON from a machine that fetches a file. It contains the number of bytes received so far, or the result.
type Message struct {
	Got     int64   `json:"got,omitempty"` // bytes received over the network
	Done    bool    `json:"done,omitempty"`
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"`
	// Shared means that this machine now serves the file.
	Shared bool `json:"shared,omitempty"`
}

// IsSum reports whether name is a SHA-256 in lowercase hex.
func IsSum(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 64 && strings.ToLower(name) == name
}

func told[T any](r io.Reader) (T, error) {
	var out T
	d := json.NewDecoder(io.LimitReader(r, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, fmt.Errorf("read what to do: %w", err)
	}
	return out, nil
}

func say(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
