// Package view is the interactive view of a cluster: screens of pkg/status's model, and the actions of the user. In: a
// source of models, actions, keys and the mouse. Out: frames, drawn when something has changed.
//
// There is one tea.Model. It contains the pages, which are plain structs. Pages convert a model and a key to lines and effects, and do no I/O.
// The Actions do all I/O, which runs as a tea.Cmd.
package view
