// Package peer copies files from machine to machine while paictl runs: a machine that has a file serves it to the others.
// In: instructions that a run sends to its machines over SSH. Out: files under their names, each with the right SHA-256.
//
// No sender is trusted: the machine that fetches a file compares the content with a checksum that it received over SSH.
package peer

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Serving is the input of a machine that serves files, as JSON.
type Serving struct {
	// Address is HOST:PORT. If the port is in use, the machine serves on another port of the same address.
	Address string `json:"address"`
	// Token is the run's token: requests without it are rejected.
	Token string `json:"token"`
	// Folder contains the files, each with its SHA-256 in hex as its name. Files are the names that may be requested.
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
	// Seconds is the time after which the machine stops serving in any case.
	Seconds int `json:"seconds"`
}

// Ready is the output of a machine when it begins to serve, as one line of JSON.
type Ready struct {
	Address string `json:"address"` // HOST:PORT
	// Certificate is in DER. The machine made it for this run, and its key never leaves the machine's memory.
	Certificate []byte `json:"certificate"`
}

// Fetching is the input of a machine that fetches one file, as JSON.
type Fetching struct {
	From  Ready  `json:"from"`
	Token string `json:"token"`

	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
	Mode   uint32 `json:"mode"`
	// Path is the path of the file once its content is verified. Part holds the content until then; content from an earlier attempt is reused.
	Path string `json:"path"`
	Part string `json:"part"`
	// Folder is the Folder of Serving, in which the file gets a second name; it may be "".
	Folder string `json:"folder,omitempty"`
	// Patience limits each wait for the other machine. Zero values select the defaults.
	Patience Patience `json:"patience"`
}

// Patience defines how long a machine waits for another before it gives up.
type Patience struct {
	// Dial limits the time until the other side responds, and Stall the time without data.
	Dial  time.Duration `json:"dial,omitempty"`
	Stall time.Duration `json:"stall,omitempty"`
	// Rate is the minimum average rate in bytes per second. The first Grace of the transfer doesn't count.
	Rate  int64         `json:"rate,omitempty"`
	Grace time.Duration `json:"grace,omitempty"`
}

// TooSlow reports whether the number of bytes received after some time is below the required rate.
func (p Patience) TooSlow(got int64, after time.Duration) bool {
	return after > p.Grace && float64(got) < float64(p.Rate)*(after-p.Grace).Seconds()
}

// WithDefaults sets zero fields to their defaults.
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

// Limit returns the time after which the transfer is abandoned.
func (f Fetching) Limit() time.Duration {
	p := f.Patience.WithDefaults()
	return 2*p.Dial + p.Grace + p.Stall + time.Duration(f.Size/p.Rate)*time.Second
}

// Failure is the reason why a transfer failed.
type Failure string

// The failures. All except Disk are faults of the other machine or the network.
const (
	Unreachable Failure = "unreachable" // no connection, or a connection to a different machine
	Refused     Failure = "refused"     // the other machine doesn't know the token or the file, or is overloaded
	Slow        Failure = "slow"
	Broken      Failure = "broken" // the connection ended early
	Wrong       Failure = "wrong"  // the content has a different checksum, and the other machine sent all of it
	Mixed       Failure = "mixed"  // the checksum is different, but a part of the content is from an earlier attempt; the content is removed
	Disk        Failure = "disk"   // this machine can't write the file
)

// Word is a line that a fetching machine prints, as JSON: how many bytes it has received so far, or the result.
type Word struct {
	Got     int64   `json:"got,omitempty"` // bytes received over the network
	Done    bool    `json:"done,omitempty"`
	Failure Failure `json:"failure,omitempty"`
	Error   string  `json:"error,omitempty"`
	// Shared means that the file is in the served folder.
	Shared bool `json:"shared,omitempty"`
}

// IsSum reports whether a name is a SHA-256 in hex.
func IsSum(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 64 && strings.ToLower(name) == name
}

// told parses a machine's input.
func told[T any](r io.Reader) (T, error) {
	var out T
	d := json.NewDecoder(io.LimitReader(r, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, fmt.Errorf("read what to do: %w", err)
	}
	return out, nil
}

// say writes one line of JSON.
func say(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
