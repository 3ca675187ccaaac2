// Faults that types do not show. Names and types are tsc's (tsconfig.json), so nothing is said of them here.

import js from "@eslint/js"

// The page's rule: whatever engines and operators wrote stays text, so nothing is made of strings.
const MADE_OF_TEXT = ["innerHTML", "outerHTML", "insertAdjacentHTML", "write", "writeln", "setHTMLUnsafe"].map((property) => (
  { property, message: "Elements are made by h(): strangers' words stay text." }))

export default [
  { ignores: ["**/vendor/**", "**/node_modules/**", "**/*.d.ts"] },
  js.configs.recommended,
  {
    rules: {
      "no-undef": "off", // tsc knows the browser's names
      "no-unused-vars": ["error", { ignoreRestSiblings: true, argsIgnorePattern: "^_$" }],
      "array-callback-return": "error",
      "consistent-return": "error",
      "default-case-last": "error",
      "eqeqeq": "error",
      "no-alert": "error",
      "no-console": "error",
      "no-constructor-return": "error",
      "no-else-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-restricted-properties": ["error", ...MADE_OF_TEXT],
      "no-return-assign": ["error", "except-parens"],
      "no-script-url": "error",
      "no-self-compare": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-useless-concat": "error",
      "no-useless-rename": "error",
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-arrow-callback": "error",
      "prefer-const": "error",
      "prefer-object-has-own": "error",
      "prefer-promise-reject-errors": "error",
      "prefer-rest-params": "error",
      "prefer-spread": "error",
      "prefer-template": "error",
      "radix": "error",
      "require-await": "error",
      "require-atomic-updates": "error",
      "symbol-description": "error",
      "yoda": "error",
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
  },
]
