// hack/portal makes a text of a style sheet of a library.
declare module "*.css" {
  const text: string;
  export default text;
}
