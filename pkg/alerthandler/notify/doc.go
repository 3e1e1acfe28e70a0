// Package notify makes notices about Actions and jobs, and decides when they are sent.
// In: Actions, jobs, people's addresses, the record of sent notices, the time. Out: messages for channels, which package send implements, and the
// next record.
//
// The record is written before and after each message. If the handler is killed between these writes, it sends the message again, but only a few
// times. Pending notices aren't stored. They are computed from the objects, and the record contains the notices that were already sent.
package notify

import (
	"context"
	"errors"
	"fmt"
)

// Message is a message in plain text. Its subject is a single line.
type Message struct {
	// ID stays the same when a message is repeated.
	ID            string
	Subject, Text string
}

// Channel sends messages to people through a mail server or a chat.
type Channel interface {
	// Open opens a connection. An error means that messages can't be sent at the moment.
	Open(ctx context.Context) (Session, error)
}

// Session is an open connection of a Channel.
type Session interface {
	// Send sends one message to an address. The address is empty for a chat. ErrRefused and ErrUnknown have a special meaning.
	Send(ctx context.Context, address string, m *Message) error
	Close()
}

// Errors of Session.Send. All other errors mean that the connection is broken and the message wasn't sent.
var (
	// ErrRefused means that the server rejects this message, but may accept other messages.
	ErrRefused = errors.New("the server refused the message")
	// ErrAddress means that the server permanently rejects the address. It wraps ErrRefused.
	ErrAddress = fmt.Errorf("%w: the address is refused", ErrRefused)
	// ErrUnknown means that the message may or may not have arrived.
	ErrUnknown = errors.New("the server didn't answer; the message may have arrived")
)
