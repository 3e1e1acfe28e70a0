// Package notify makes notices about Actions and jobs, and decides when they are sent.
// In: Actions, jobs, people's addresses, the record of sent notices, the time. Out: messages for channels, which package send implements, and
// the next record.
//
// The record is written before and after each message. A handler that is killed between them sends a message again, and only a few times. The
// queue isn't stored: it is made of the objects, and the record has the notices that were sent.
package notify

import (
	"context"
	"errors"
)

// Message is plain text with a subject, which is one line.
type Message struct {
	// ID is the same when a message is sent again.
	ID            string
	Subject, Text string
}

// Channel reaches people: a mail server, or a chat.
type Channel interface {
	// Open connects. An error means that no message can be sent now.
	Open(ctx context.Context) (Session, error)
}

// Session is a connection of a Channel.
type Session interface {
	// Send sends one message to an address, which is empty for a chat. See ErrRefused and ErrUnknown.
	Send(ctx context.Context, address string, m *Message) error
	Close()
}

// Errors of Session.Send. All other errors mean that the connection is broken and the message wasn't sent.
var (
	// ErrRefused means that the server doesn't accept this message; it may accept others.
	ErrRefused = errors.New("the server refused the message")
	// ErrUnknown means that the message may have arrived.
	ErrUnknown = errors.New("the server didn't answer; the message may have arrived")
)
