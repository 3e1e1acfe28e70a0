package history

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/terminal"
	"github.com/openpai/paictl/pkg/version"
)

// These are the types of messages, in the order in which they are sent. Both programs begin with TypeHello. paictl then sends TypeOpen and TypeTake,
// and responds to each TypeAsk and TypePart.
const (
	TypeHello  = "hello"
	TypeOpen   = "open"   // paictl: connect to the database
	TypeOpened = "opened" // the program is connected
	TypeFailed = "failed" // the program couldn't connect, and exits
	TypeTake   = "take"   // paictl: read all jobs
	TypeAsk    = "ask"    // the program: which of these jobs exist?
	TypeKnown  = "known"  // paictl: these
	TypeTold   = "told"   // the program: the number of jobs that are checked
	TypePart   = "part"   // the program: a part of a history, which follows the message
	TypeGiven  = "given"  // paictl: the part was stored
	TypeDone   = "done"   // the program has finished, and exits
)

// Message is a message between the two programs. Type determines which of the other fields are set.
type Message struct {
	Type string `json:"type"`
	// Protocol and Version belong to the sender of a TypeHello.
	Protocol int    `json:"protocol,omitempty"`
	Version  string `json:"version,omitempty"`
	// From is the address of the database, or a file that contains the address. Secrets holds the environment variables with passwords that paictl
	// has. Both are set in TypeOpen.
	From    string            `json:"from,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"`
	// DryRun in a TypeTake means that paictl doesn't want any parts.
	DryRun bool `json:"dryRun,omitempty"`
	// UIDs holds the UIDs of jobs in a TypeAsk. Known reports, in a TypeKnown, for each of them whether the history already has the job.
	UIDs  []string `json:"uids,omitempty"`
	Known []bool   `json:"known,omitempty"`
	// Checked is the number of jobs that have been checked, and All is the number of all jobs, in a TypeTold.
	Checked int `json:"checked,omitempty"`
	All     int `json:"all,omitempty"`
	// Size is the number of bytes of a part in a TypePart.
	Size int64 `json:"size,omitempty"`
	// Error is the text of an error, and Hint is its remedy. Both are set in TypeFailed and TypeDone.
	Error string `json:"error,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Report describes the jobs in a TypeDone.
	Report *Report `json:"report,omitempty"`
}

// SetError stores an error in a message.
func (m *Message) SetError(err error) {
	if err != nil {
		m.Error, m.Hint = err.Error(), hint.Of(err)
	}
}

// Err returns the error that a message contains, or nil.
func (m *Message) Err() error {
	switch {
	case m.Error == "":
		return nil
	case m.Hint == "":
		return errors.New(m.Error)
	}
	return hint.Wrap(errors.New(m.Error), m.Hint)
}

const (
	// protocol is the version of the format of messages.
	protocol = 1
	// maxMessage is the maximum size of a message in bytes. The largest message is the report, with about 200 bytes for each person.
	maxMessage = 64 << 20
	// maxPart is the maximum size of a part in bytes. It is far larger than a thousand large jobs. A part isn't kept in memory.
	maxPart = 64 << 30
)

// Conn is one end of the connection between paictl and paictl-history. Messages are JSON, and each message is preceded by its length in four bytes.
// A Conn supports one concurrent reader and one concurrent writer.
type Conn struct {
	in  *bufio.Reader
	out io.Writer
}

// NewConn returns a Conn that reads from in and writes to out, which are pipes.
func NewConn(in io.Reader, out io.Writer) *Conn {
	return &Conn{in: bufio.NewReader(in), out: out}
}

// Send sends a message.
func (c *Conn) Send(m *Message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("the message %q has %d bytes, which are more than %d", m.Type, len(text), maxMessage)
	}
	_, err = c.out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Receive waits for the next message. The error is io.EOF if the other program has closed the connection between two messages.
func (c *Conn) Receive() (*Message, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.in, length[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > maxMessage {
		return nil, fmt.Errorf("a message is said to have %d bytes, which are more than %d", n, maxMessage)
	}
	text, err := io.ReadAll(io.LimitReader(c.in, n)) // its memory grows with the bytes that arrive
	if err == nil && int64(len(text)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	m := &Message{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("a message isn't JSON of this form: %w", err)
	}
	return m, nil
}

// Greet exchanges versions with the other program. It returns an error if the versions of the protocol differ.
func (c *Conn) Greet(self, other string) error {
	if err := c.Send(&Message{Type: TypeHello, Protocol: protocol, Version: version.Version}); err != nil {
		return err
	}
	m, err := c.Receive()
	switch {
	case err != nil:
		return err
	case m.Type != TypeHello:
		return unexpected(m)
	case m.Version != version.Version || m.Protocol != protocol:
		return hint.Errorf("install both from one release, or build both with make build", "%s is of %.100s, and %s of %s", other, terminal.Line(m.Version), self, version.Version)
	}
	return nil
}

func unexpected(m *Message) error {
	return fmt.Errorf("a message has the unexpected type %.100q", m.Type)
}

// SendPart sends a part of size bytes. After an error, the connection must not be used.
func (c *Conn) SendPart(part io.Reader, size int64) error {
	if err := c.Send(&Message{Type: TypePart, Size: size}); err != nil {
		return err
	}
	_, err := io.CopyN(c.out, part, size)
	return err
}

// part returns the bytes of a part, which follow a TypePart.
func (c *Conn) part(size int64) (*body, error) {
	if size <= 0 || size > maxPart {
		return nil, fmt.Errorf("a part is said to have %d bytes, which aren't from 1 to %d", size, int64(maxPart))
	}
	return &body{in: c.in, left: size}, nil
}

// body is a part that is being received. A receiver that has returned an error may still read from it, because net/http reads in the background.
type body struct {
	mu    sync.Mutex
	in    io.Reader
	left  int64
	err   error // that of the connection, if it failed
	ended bool
}

// Read implements io.Reader. It returns io.EOF only at the end of a complete part.
func (b *body) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended:
		return 0, os.ErrClosed // the following bytes don't belong to the part
	case b.left == 0:
		return 0, io.EOF
	case b.err != nil:
		return 0, b.err
	}
	n, err := b.in.Read(to[:min(int64(len(to)), b.left)])
	if b.left -= int64(n); b.left > 0 {
		b.err = cut(err)
		return n, b.err
	}
	return n, nil
}

// end discards the unread bytes of the part, and returns the error of the connection.
func (b *body) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	if b.err == nil {
		_, err := io.CopyN(io.Discard, b.in, b.left)
		b.err = cut(err)
	}
	return b.err
}

// cut converts io.EOF to io.ErrUnexpectedEOF, because a connection must not end within a message or a part.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
