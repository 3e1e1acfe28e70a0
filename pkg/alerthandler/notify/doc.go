// Package notify makes notices about Actions and jobs, and decides when they are sent.
// In: Actions, jobs, people's addresses, the record of sent notices, the time. Out: messages for channels, which package send implements, and the
// next record.
//
// The record is written before and after each message. If the handler is killed between these writes, it sends the message again, but only a few
// times. Pending notices aren't stored. They are computed from the objects, and the record shows which notices were already sent.
package notify

import (
	"context"
	"errors"
	"fmt"
)

// Message is a message in plain text. Its subject is a single line.
type Message struct {
	// ID stays the same when a message is sent again.
	ID            string
	Subject, Text string
}

// Channel is a way to send messages to people: a mail server or a chat.
type Channel interface {
	// Open opens a connection. An error means that no message can be sent now.
	Open(ctx context.Context) (Session, error)
}

// Session is a connection of a Channel.
type Session interface {
	// Send sends one message to an address, which is empty for a chat. ErrRefused and ErrUnknown have a special meaning.
	Send(ctx context.Context, address string, m *Message) error
	Close()
}

// Errors of Session.Send. All other errors mean that the connection is broken and the message wasn't sent.
var (
	// ErrRefused means that the server rejects this message. It may accept other messages.
	ErrRefused = errors.New("the server refused the message")
	// ErrAddress means that the server permanently rejects the address. Such an error is also an ErrRefused.
	ErrAddress = fmt.Errorf("%w: the address is refused", ErrRefused)
	// ErrUnknown means that it isn't known whether the message has arrived.
	ErrUnknown = errors.New("the server didn't answer; the message may have arrived")
)
