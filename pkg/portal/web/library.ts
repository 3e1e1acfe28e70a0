// The libraries, as one file that all pages share.
export * from "preact";
export * from "preact/hooks";
export { Fragment, jsx, jsxs } from "preact/jsx-runtime";
export * from "@preact/signals";
